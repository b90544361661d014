/** The roofline of ops or of kernels. */

import { h } from '../core/dom.js';
import { name, prose } from '../core/text.js';
import { there } from '../core/types.js';
import { ABSENT, formatCount, formatNs, formatRate, formatShare } from '../core/units.js';
import { device, named, ns, number, share, word } from '../widgets/columns.js';
import { searchParams } from '../widgets/finding.js';
import { charted, missing, panel } from '../widgets/panel.js';
import { roofline } from '../widgets/roofline.js';
import { table } from '../widgets/table.js';
import { tipLines } from '../widgets/tip.js';

/** @typedef {import('../core/types.js').Context} Context */
/** @typedef {import('../widgets/roofline.js').Placed} Placed */
/** @typedef {import('../core/document.js').Roof} Roof */

/** @param {Context} context */
export function roofs(context) {
  const { report } = context;
  const what = context.place.params.roofline === 'kernels' ? 'kernels' : 'ops';
  const rows = report.analyses.roofline?.[what] ?? [];
  const placed = /** @type {Placed[]} */ (rows.filter((row) => row.intensity && row.flops_per_s));
  const title = what === 'ops' ? 'Roofline of ops by shape' : 'Roofline of kernels';
  if (!rows.length) {
    return panel(title, null, missing('The work of no op is known.', prose(whyNone(report.profile.format))));
  }
  const select = h('select', { 'aria-label': 'Roofline of', onchange: () => {
    context.go('kernels', { ...context.place.params, roofline: select.value });
  } }, h('option', { value: 'ops', selected: what === 'ops' }, 'ops by shape'),
  h('option', { value: 'kernels', selected: what === 'kernels' }, 'kernels'));
  const doubts = [...new Set(rows.map((row) => row.doubt).filter(Boolean))];
  const label = (/** @type {Roof} */ row) => (what === 'ops' ? row.op : row.kernel) ?? '';
  const asTable = () => table({
    label: title,
    rows,
    columns: columnsOf(report, what, label),
    onRow: (row) => context.go('trace', searchParams(context, label(row))),
    rowLabel: 'Trace',
  });
  const note = [`area: time; ${drawn(report, rows, placed)}`, ...doubts].join('; ');
  if (!placed.length) return panel(title, { actions: [select] }, asTable());
  return charted(title, { note, actions: [select] }, () => roofline({
    label: title,
    rows: placed,
    title: label,
    tell: (row) => [name(label(row)), ...tipLines(row.dims ?? '', [
      { label: 'time', value: `${formatNs(row.total_ns)} in ${formatCount(row.count)}` },
      { label: 'rate', value: `${formatRate(row.flops_per_s, 'FLOP/s')}, ${formatShare(row.flops_share)} of the peak` },
      { label: 'memory', value: `${formatRate(row.bytes_per_s ?? 0, 'B/s')}, ${formatShare(row.bandwidth_share)}` },
      { label: 'bound by', value: row.bound ?? ABSENT },
    ])],
    announce: context.announce,
  }), asTable);
}

/** @param {string} format */
function whyNone(format) {
  return format === 'XPlane' ? 'XLA wrote no costs of its ops into this profile.'
    : 'It follows from shapes: record them (PyTorch: `record_shapes=True`); of ops whose work does not follow from '
      + 'them it stays unknown.';
}

/**
 * @param {import('../core/types.js').Report} report
 * @param {'ops'|'kernels'} what
 * @param {(row: Roof) => string} label
 * @returns {import('../widgets/table.js').Column<Roof>[]}
 */
function columnsOf(report, what, label) {
  return [
    named(what === 'ops' ? 'op' : 'kernel', label),
    named('shapes', (row) => row.dims),
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
}

/**
 * How much of the kernels' time the points stand for.
 * @param {import('../core/types.js').Report} report
 * @param {{total_ns: number}[]} rows
 * @param {{total_ns: number}[]} placed
 */
export function drawn({ analyses }, rows, placed) {
  const sum = (/** @type {number[]} */ values) => values.reduce((total, value) => total + value, 0);
  const [longest] = there(analyses.kernels);
  const all = longest.total_ns / longest.share;
  const cut = placed.length < rows.length ? `${placed.length} of ${rows.length} points drawn` : 'all points drawn';
  return `${cut}, ${formatShare(sum(placed.map((row) => row.total_ns)) / all)} of kernel time; of other kernels the `
    + 'work or the bytes are not known, or they are not among the longest';
}
