/** Of a job: the critical path over all ranks, by rank and kind of time. */

import { h } from '../core/dom.js';
import { there } from '../core/types.js';
import { formatCount, formatNs, formatShare } from '../core/units.js';
import { ns, number } from '../widgets/columns.js';
import { compared } from '../widgets/compared.js';
import { charted, missing, panel } from '../widgets/panel.js';
import { table } from '../widgets/table.js';

/** @typedef {import('../core/types.js').Context} Context */
/** @typedef {import('../core/document.js').JobPath} JobPath */

const TITLE = 'What sets the step time: the critical path over all ranks';
const MOST_BARS = 12;

/** @param {Context} context */
export function path(context) {
  const { report, words } = context;
  const critical = there(report.analyses.ranks).critical_path;
  if (!critical) return null;
  const { parts_ns_per_step: parts, ranks } = critical;
  if (!parts) return panel(TITLE, null, missing(`It is not known, because ${critical.why_not}.`));
  const kinds = Object.keys(parts);
  return charted(TITLE, { note: noteOf(critical) }, () => h('div', null,
    h('p', { style: { 'margin-bottom': '8px' } }, kinds.map((kind) => (
      `${words.categories[kind].words} ${formatShare(parts[kind] / (critical.ns_per_step || 1))}`)).join(' · ')),
    compared(context, ranks.slice(0, MOST_BARS).map((one) => ({
      label: `rank ${one.rank}`, total: one.ns_per_step, parts: one.parts_ns_per_step,
    })))), () => table({
    label: 'The critical path by rank',
    rows: ranks,
    columns: [
      number('rank', (row) => row.rank, String),
      ns('on the path, per step', (row) => row.ns_per_step),
      number('share', (row) => row.share, formatShare),
      ...kinds.map((kind) => ns(words.categories[kind].words, (row) => row.parts_ns_per_step[kind] ?? 0)),
    ],
  }));
}

/** @param {JobPath} path */
function noteOf({ steps, ns_per_step: length, longer_ns_per_step: longer, hops_per_step: hops,
  undivided_per_step: undivided, ranks }) {
  const apart = Math.abs(longer ?? 0);
  return [
    `${formatNs(length)} per step, the mean of ${formatCount(steps)} steps`
      + (apart ? ` (${formatNs(apart)} ${Number(longer) > 0 ? 'longer' : 'shorter'} than the mean of ranks)` : ''),
    'at each collective it goes on along the rank that came last, so nobody\'s waiting is on it',
    `it goes to another rank ${(hops ?? 0).toFixed(1)} times per step`,
    undivided ? `of ${undivided.toFixed(1)} collectives per step who came last is not known` : null,
    ranks.length > MOST_BARS ? `${MOST_BARS} ranks with most of it here; Table has ${ranks.length}` : null,
  ].filter(Boolean).join('; ');
}
