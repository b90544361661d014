/** What the device ran and how well, and why it was idle in between. */

import { h } from '../core/dom.js';
import { prose } from '../core/text.js';
import { there } from '../core/types.js';
import { formatBytes, formatNs, formatPerStep, formatRate, formatShare } from '../core/units.js';
import { device, named, ns, number, share, size, where, word, yes } from '../widgets/columns.js';
import { findingCard, searchParams } from '../widgets/finding.js';
import { missing, panel } from '../widgets/panel.js';
import { related, tiles } from '../widgets/related.js';
import { table } from '../widgets/table.js';
import { delays, gaps, idleBy, syncs } from './kernels_idle.js';
import { roofs } from './kernels_roofline.js';

/** @typedef {import('../core/types.js').Context} Context */
/** @typedef {import('../widgets/related.js').Tile} Tile */
/** @typedef {Record<string, any>} Row */

/** @type {import('../core/types.js').Page} */
export const kernels = { id: 'kernels', key: 'k', title: 'Kernels', render, ofOneRank: true, ofSteps: true };

/** @param {Context} context */
function render(context) {
  const { analyses } = context.report;
  if (!analyses.kernels) {
    const onCpu = context.report.profile.accelerators === 0;
    const text = onCpu
      ? 'This ran on the CPU: there are no kernels of a device to look at. Ops has what it computed.'
      : 'No device activity was recorded: there are no kernels to look at.';
    return h('div', { class: 'page' }, panel('Kernels', null, missing(text, prose(context.words.missing.device))),
      related(context, 'kernels'));
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
    fusion(context),
    delays(context),
    related(context, 'kernels'),
  );
}

/** @param {Context} context */
function figures({ report, words }) {
  const { summary, analyses } = report;
  const precision = analyses.precision;
  const cores = precision?.tensor_core_share;
  return tiles([
    ['device busy', formatShare(summary.device_busy_share), 'of the step time'],
    words.narrow,
    cores && ['on tensor cores', orNot(cores.yes), 'of kernel time'],
    precision && ['could use them, does not', formatNs(precision.eligible_unused_ns_per_step), 'per step'],
    ...(analyses.mfu ?? []).filter((one) => one.flops_per_step).map((one) => /** @type {Tile} */ ([
      'work per step', formatRate(one.flops_per_step, 'FLOP'),
      `${formatShare(one.counted_share)} of kernel time counted`])),
    ...(analyses.xla?.duty_cycle ?? []).filter((one) => one.share !== null)
      .map((one) => /** @type {Tile} */ (['duty cycle', formatShare(one.share), `device ${one.device}`])),
  ]);
}

/** @param {number|null} value */
function orNot(value) {
  return value === null ? 'not recorded' : formatShare(value);
}

/** @param {Context} context */
function list(context) {
  const { report, place } = context;
  const rows = there(report.analyses.kernels);
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
    onRow: (row) => context.go('trace', searchParams(context, row.name)),
    rowLabel: 'Trace',
  }));
}

/**
 * Runs of kernels that one kernel could do, whether fixing them saves much or little.
 * @param {Context} context
 */
function fusion(context) {
  const { findings, analyses } = context.report;
  const found = [...findings, ...analyses.minor_findings ?? []].filter(({ rule }) => rule === 'memory_bound_chain');
  if (!found.length) return null;
  return panel('Fusion candidates', { note: 'kernels in a row that only move data, which one kernel could do' },
    ...found.map((one, at) => findingCard(at + 1, one, context, true)));
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
