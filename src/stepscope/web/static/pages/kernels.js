/** What the device ran and how well, and why it was idle in between. */

import { h } from '../core/dom.js';
import { name, prose } from '../core/text.js';
import {
  ABSENT, formatBytes, formatCount, formatNs, formatPerStep, formatRate, formatShare, orDash,
} from '../core/units.js';
import { device, named, ns, number, share, size, where, word, yes } from '../widgets/columns.js';
import { traceParams } from '../widgets/finding.js';
import { hbar, swatch } from '../widgets/hbar.js';
import { charted, missing, panel } from '../widgets/panel.js';
import { apart, related, tiles } from '../widgets/related.js';
import { roofline } from '../widgets/roofline.js';
import { table } from '../widgets/table.js';
import { tipLines } from '../widgets/tip.js';

/** @typedef {import('../core/types.js').Context} Context */
/** @typedef {Record<string, any>} Row */

const RULES = ['memory_bound_chain', 'tensor_cores_unused', 'tf32_off', 'alignment', 'amp_partial', 'too_little_work',
  'launch_bound', 'exposed_copy', 'sync_bound', 'low_precision_share', 'exposed_collective'];

/** @type {import('../core/types.js').Page} */
export const kernels = { id: 'kernels', key: 'k', title: 'Kernels', render, ofOneRank: true };

/** @param {Context} context */
function render(context) {
  const { analyses } = context.report;
  if (!analyses.kernels) {
    const text = 'No device activity was recorded: there are no kernels to look at.';
    return h('div', { class: 'page' }, panel('Kernels', null, missing(text, prose(context.words.missing.device))));
  }
  return h(
    'div',
    { class: 'page' },
    figures(context),
    roofs(context),
    list(context),
    ...(analyses.breakdown ?? []).filter((one) => !one.unused).map((one) => idleBy(context, one)),
    gaps(context),
    syncs(context),
    copies(context),
    delays(context),
    related(context, RULES),
  );
}

/** @param {Context} context */
function figures({ report, words }) {
  const { summary, analyses } = report;
  const precision = analyses.precision;
  const cores = precision?.tensor_core_share;
  const narrow = words.headlines.find(([label]) => label === '16-bit kernels');
  return tiles([
    ['device busy', formatShare(summary.device_busy_share), 'of the step time'],
    narrow && [narrow[0], ...apart(narrow[1])],
    cores && ['on tensor cores', orNot(cores.yes), 'of kernel time'],
    precision && ['could use them, does not', formatNs(precision.eligible_unused_ns_per_step), 'per step'],
    ...(analyses.mfu ?? []).filter((/** @type {Row} */ one) => one.flops_per_step).map((/** @type {Row} */ one) => ([
      'work per step', formatRate(one.flops_per_step, 'FLOP'),
      `${formatShare(one.counted_share)} of kernel time counted`])),
    ...(analyses.xla?.duty_cycle ?? []).filter((/** @type {Row} */ one) => one.share !== null)
      .map((/** @type {Row} */ one) => ['duty cycle', formatShare(one.share), `device ${one.device}`]),
  ]);
}

/** @param {number|null} value */
function orNot(value) {
  return value === null ? 'not recorded' : formatShare(value);
}

/** @param {Context} context */
function roofs(context) {
  const { report } = context;
  const what = context.place.params.roofline === 'kernels' ? 'kernels' : 'ops';
  const rows = report.analyses.roofline?.[what] ?? [];
  const placed = rows.filter((/** @type {Row} */ row) => row.intensity > 0 && row.flops_per_s > 0);
  const title = what === 'ops' ? 'Roofline of ops by shape' : 'Roofline of kernels';
  if (!rows.length) {
    return panel(title, null, missing('The work of no op is known.', prose(
      'It follows from shapes: record them (PyTorch: `record_shapes=True`), or a profile of XLA, which has them.')));
  }
  const select = h('select', { 'aria-label': 'Roofline of', onchange: () => {
    context.go('kernels', { ...context.place.params, roofline: select.value });
  } }, h('option', { value: 'ops', selected: what === 'ops' }, 'ops by shape'),
  h('option', { value: 'kernels', selected: what === 'kernels' }, 'kernels'));
  const doubts = [...new Set(rows.map((/** @type {Row} */ row) => row.doubt).filter(Boolean))];
  const label = (/** @type {Row} */ row) => (what === 'ops' ? row.op : row.kernel);
  const columns = [
    named(what === 'ops' ? 'op' : 'kernel', label),
    named('shapes', (/** @type {Row} */ row) => row.dims),
    ...device(report),
    ns('time', (row) => row.total_ns),
    number('count', (row) => row.count),
    word('precision', (row) => row.precision),
    number('rate', (row) => row.flops_per_s, (value) => formatRate(value, 'FLOP/s')),
    share('of peak', (row) => row.flops_share),
    number('bytes', (row) => row.bytes_per_s, (value) => formatRate(value, 'B/s')),
    share('of bandwidth', (row) => row.bandwidth_share),
    word('bound by', (row) => row.bound),
  ];
  const asTable = () => table({ label: title, rows, columns });
  const note = `area: time; colour and outline: bound by computing or by memory${
    doubts.length ? `; ${doubts.join('; ')}` : ''}`;
  if (!placed.length) return panel(title, { actions: [select] }, asTable());
  return charted(title, { note, actions: [select] }, () => roofline({
    label: title,
    rows: placed,
    title: label,
    tell: (row) => [name(label(row)), ...tipLines(row.dims ?? '', [
      { label: 'time', value: `${formatNs(row.total_ns)} in ${formatCount(row.count)}` },
      { label: 'rate', value: `${formatRate(row.flops_per_s, 'FLOP/s')}, ${formatShare(row.flops_share)} of the peak` },
      { label: 'memory', value: `${formatRate(row.bytes_per_s, 'B/s')}, ${formatShare(row.bandwidth_share)}` },
      { label: 'bound by', value: row.bound ?? ABSENT },
    ])],
    announce: context.announce,
  }), asTable);
}

/** @param {Context} context */
function list({ report, place }) {
  const rows = report.analyses.kernels;
  const sizes = (/** @type {number[]|null|undefined} */ value) => (value?.length ? value.join('×') : null);
  return panel('Kernels by time', { note: `the ${rows.length} that take longest, in the steps used` }, table({
    label: 'Kernels',
    rows,
    filter: place.params.name,
    columns: [
      named('kernel', (row) => row.name),
      ...device(report),
      named('from op', (row) => row.op),
      ns('time', (row) => row.total_ns),
      share('share', (row) => row.share),
      number('count', (row) => row.count),
      ns('mean', (row) => row.mean_ns),
      ns('longest', (row) => row.max_ns),
      word('precision', (row) => row.precision),
      word('tensor cores', (row) => row.tensor_core),
      yes('could use them', (row) => row.tensor_core_eligible),
      word('grid', (row) => sizes(row.launch?.grid)),
      word('block', (row) => sizes(row.launch?.block)),
      number('registers', (row) => row.launch?.registers, String),
      size('shared memory', (row) => row.launch?.shared_memory),
      number('occupancy', (row) => row.launch?.occupancy_pct, (value) => `${value.toFixed(0)} %`),
    ],
  }));
}

/** @param {Context} context @param {import('../core/types.js').Breakdown} entry */
function idleBy({ report, words }, entry) {
  const parts = entry.parts.filter((part) => !part.busy && part.ns_per_step);
  if (!parts.length) return null;
  const many = report.profile.devices.length > 1 ? `, device ${entry.device}` : '';
  const total = (report.analyses.idle?.per_device ?? []).find((/** @type {Row} */ one) => one.device === entry.device);
  const note = total && `${formatNs(total.total_ns)} idle in the steps: ${formatNs(total.between_steps_ns)} before the `
    + `first op of a step, ${formatNs(total.within_steps_ns)} behind it`;
  return panel(`Idle time by cause, per step${many}`, { note }, hbar('Idle time by cause', parts.map((part) => ({
    words: words.categories[part.category].words,
    swatch: swatch(part.category, false),
    ns: part.ns_per_step,
    share: part.share,
    busy: false,
  }))));
}

/** @param {Context} context */
function gaps(context) {
  const { report, words } = context;
  const all = report.analyses.idle?.gaps ?? [];
  const rows = /** @type {Row[]} */ (all).filter((gap) => context.inSteps(gap.step));
  const cause = (/** @type {Row} */ gap) => Object.keys(gap.parts).sort((a, b) => gap.parts[b] - gap.parts[a])[0];
  if (!all.length) return null;
  return panel('Longest idle gaps', { note: context.scope() }, table({
    label: 'Longest idle gaps',
    rows,
    columns: [
      ...device(report),
      word('step', (row) => (words.steps[String(row.step)] ?? '–') + (row.crosses_step ? '+' : '')),
      ns('at', (row) => row.start_ns),
      ns('idle', (row) => row.dur_ns),
      {
        title: 'mostly',
        value: (row) => words.categories[cause(row)]?.words ?? null,
        show: (row) => h('span', { class: 'nowrap' }, h('i', { class: `swatch ${swatch(cause(row), false)}` }),
          words.categories[cause(row)]?.words ?? ABSENT),
      },
      named('first op after it', (row) => row.op),
      named('the host is in', (row) => row.blocking ?? row.launch),
      where(),
    ],
    onRow: (row) => context.go('trace', traceParams(row.start_ns, row.dur_ns, null)),
    rowLabel: 'Trace',
  }));
}

/** @param {Context} context */
function syncs({ report }) {
  const rows = report.analyses.syncs ?? [];
  if (!rows.length) return null;
  return panel('Waits of the host for the device, per step', null, table({
    label: 'Waits of the host for the device',
    rows,
    columns: [
      named('host waits in', (row) => row.op ?? row.call),
      ...device(report),
      number('per step', (row) => row.per_step, formatPerStep),
      ns('host blocked', (row) => row.blocked_ns_per_step),
      ns('device idle for it', (row) => row.cost_ns_per_step),
      where(),
      named('why', (row) => row.cause),
    ],
  }));
}

/** @param {Context} context */
function copies({ report }) {
  const rows = report.analyses.copies ?? [];
  if (!rows.length) return null;
  return panel('Copies, per step', null, table({
    label: 'Copies',
    rows,
    columns: [
      word('copy', (row) => row.direction),
      word('memory', (row) => `${row.source_memory} → ${row.target_memory}`),
      named('from op', (row) => row.op),
      ...device(report),
      number('per step', (row) => row.per_step, formatPerStep),
      number('bytes', (row) => row.bytes_per_step, formatBytes),
      ns('exposed', (row) => row.exposed_ns_per_step),
      yes('every step', (row) => row.every_step),
      where(),
    ],
  }));
}

/** @param {Context} context */
function delays({ report }) {
  const rows = /** @type {Row[]} */ (report.analyses.launch_delay ?? []);
  if (!rows.length) return null;
  return panel('From launch to start', { note: 'where nothing was queued' }, table({
    label: 'From launch to start',
    rows,
    columns: [
      number('device', (row) => row.device, String),
      number('launches', (row) => row.count),
      ns('median', (row) => row.median_ns),
      ns('p95', (row) => row.p95_ns),
      {
        title: 'step time spent waiting',
        value: (row) => row.waiting_share,
        numeric: true,
        show: (row) => orDash(row.waiting_share, formatShare),
      },
    ],
  }));
}
