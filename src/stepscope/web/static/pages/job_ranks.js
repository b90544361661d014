/** Of a job: who is late beyond chance, and where the time of each rank goes. */

import { h } from '../core/dom.js';
import { there } from '../core/types.js';
import { formatNs } from '../core/units.js';
import { named, ns, number, word } from '../widgets/columns.js';
import { compared } from '../widgets/compared.js';
import { lane, laneName, told } from '../widgets/lanes.js';
import { charted, missing, panel } from '../widgets/panel.js';
import { table } from '../widgets/table.js';

/** @typedef {import('../core/types.js').Context} Context */
/** @typedef {import('../core/document.js').Straggler} Straggler */

const MOST_BARS = 64;

/** @param {Context} context */
export function stragglers({ report, words }) {
  const ranks = there(report.analyses.ranks);
  if (!ranks.determined) {
    return panel('Stragglers', null, missing('Whether a rank is late beyond chance is not determined: that needs '
      + 'collectives that are matched between ranks in each of enough steps.'));
  }
  if (!ranks.stragglers.length) {
    return panel('Stragglers', null, h('p', null, 'No rank is late step after step, beyond chance.'));
  }
  return panel('Stragglers', { note: 'p: how likely chance alone makes a rank late as often' }, table({
    label: 'Stragglers',
    rows: ranks.stragglers,
    columns: [
      ...lane(),
      named('host', (row) => row.host),
      ns('others wait per step', (row) => row.waited_ns_per_step),
      ns('saves per step', (row) => row.saving_ns_per_step),
      number('late in steps', (row) => row.steps),
      number('p', (row) => row.p_value, (value) => (value < 0.001 ? value.toExponential(1) : value.toPrecision(2))),
      word('cause', (row) => words.causes[row.cause]),
      { title: 'more than the others', wide: true, value: (row) => excess(words, row) },
      { title: 'kernels that take longer', wide: true, value: (row) => row.kernels.map((one) =>
        `${one.name} (${one.times.toFixed(2)} ×)`).join(', ') || null },
    ],
  }));
}

/** @param {import('../core/types.js').Words} words @param {Straggler} row */
function excess(words, row) {
  return Object.entries(row.excess_ns_per_step).map(([category, value]) =>
    `${words.categories[category].words} ${formatNs(value)}`).join(', ') || null;
}

/** @param {Context} context */
export function breakdowns(context) {
  const { report, words } = context;
  const all = there(report.analyses.ranks).per_rank;
  if (!all.length) return null;
  const ordered = [...all].sort((a, b) => (b.made_wait_ns_per_step ?? 0) - (a.made_wait_ns_per_step ?? 0));
  const present = Object.keys(words.categories).filter((one) => all.some((row) => row.parts_ns_per_step[one]));
  const cut = all.length > MOST_BARS ? `; ${MOST_BARS} of ${all.length}, Table has all` : '';
  const note = `means per step; those the others wait for come first${cut}`;
  return charted('Where the time of each rank goes', { note }, () => compared(context,
    ordered.slice(0, MOST_BARS).map((row) => ({
      label: laneName(row), total: row.step_ns, parts: row.parts_ns_per_step,
    }))), () => table({
    label: 'Time of each rank',
    rows: ordered,
    columns: [
      ...lane(),
      named('host', (row) => row.host),
      ns('step time', (row) => row.step_ns),
      told('others wait for it', (row) => row.made_wait_ns_per_step, formatNs),
      told('late in steps', (row) => row.late_steps, String),
      ns('waits in the pipeline', (row) => row.pipeline_wait_ns_per_step),
      ...present.map((one) => ns(words.categories[one].words, (row) => row.parts_ns_per_step[one] ?? 0)),
    ],
  }));
}
