/** What the device ran and how well, and why it was idle in between. */

import { h } from '../core/dom.js';
import { prose } from '../core/text.js';
import { there } from '../core/types.js';
import { formatNs, formatRate, formatShare } from '../core/units.js';
import { where } from '../widgets/columns.js';
import { declared } from '../widgets/declared.js';
import { overDevices } from '../widgets/devices.js';
import { findingCard, searchParams } from '../widgets/finding.js';
import { ofAllDevices } from '../widgets/merged.js';
import { missing, panel } from '../widgets/panel.js';
import { known, related, tiles } from '../widgets/related.js';
import { table } from '../widgets/table.js';
import { delays, gaps, idleBy, syncs } from './kernels_idle.js';
import { roofs } from './kernels_roofline.js';
import { hasOverRanks, overRanks } from './over_ranks.js';

/** @typedef {import('../core/types.js').Context} Context */
/** @typedef {import('../core/document.js').Kernel} Kernel */
/** @typedef {Kernel & {inner?: Kernel[]}} Merged */

/** @type {import('../core/types.js').Page} */
export const kernels = { id: 'kernels', key: 'k', title: 'Kernels', render, ofSteps: true,
  ofJob: (context) => overRanks(context, 'kernels'),
  has: (report) => Boolean(report.analyses.kernels) || hasOverRanks(report, 'kernels') };

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
    idleBy(context),
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
    ['device busy', known(summary.device_busy_share, formatShare), 'of the step time'],
    words.narrow,
    cores && ['on tensor cores', known(cores.yes, formatShare), 'of kernel time'],
    precision && ['could use them, does not', known(precision.eligible_unused_ns_per_step, formatNs), 'per step'],
    ...overDevices('work per step', (analyses.mfu ?? []).filter((one) => one.flops_per_step).map((one) => ({
      device: one.device, value: one.flops_per_step, rest: `${formatShare(one.counted_share)} of kernel time counted`,
    })), (value) => formatRate(value, 'FLOP')),
    ...overDevices('duty cycle', (analyses.xla?.duty_cycle ?? []).flatMap(({ device, share }) => (
      share === null ? [] : [{ device, value: share }])), formatShare),
  ]);
}

/** @param {Context} context */
function list(context) {
  const { report, place } = context;
  const all = there(report.analyses.kernels);
  const rows = ofAllDevices(all, (row) => [row.name, row.op]);
  const merged = rows.length < all.length ? '; a kernel of several devices is one row, which opens' : '';
  return panel('Kernels by time', { note: `the ${all.length} that take longest, in the steps used${merged}` }, table({
    label: 'Kernels',
    rows,
    inner: (row) => row.inner ?? [],
    filter: place.params.name,
    columns: [
      ...declared('Kernel', report),
      ...declared('KernelLaunch', report, {}, (/** @type {Merged} */ row) => row.launch),
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
  const { words, report: { findings, analyses } } = context;
  const fusing = [...findings, ...analyses.minor_findings ?? []]
    .filter(({ id }) => words.findings[id].panel === 'fusion');
  if (!fusing.length) return null;
  return panel('Fusion candidates', { note: 'kernels in a row that only move data, which one kernel could do' },
    ...fusing.map((one, at) => findingCard(at + 1, one, context, true)));
}

/** @param {Context} context */
function copies({ report }) {
  const rows = report.analyses.copies ?? [];
  if (!rows.length) return null;
  return panel('Copies, per step', null, table({
    label: 'Copies',
    rows,
    columns: [
      ...declared('Copy', report, { source_memory: (row) => `${row.source_memory} → ${row.target_memory}` }),
      where('where', (row) => row.where),
    ],
  }));
}
