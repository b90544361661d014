/** The ops of compiled programs by scope, and one of them closer. */

import { h, put } from '../core/dom.js';
import { formatNs, formatRate, formatShare } from '../core/units.js';
import { named, ns, number, word } from '../widgets/columns.js';
import { pickDevice } from '../widgets/devices.js';
import { instruction } from '../widgets/hlo_graph.js';
import { panel } from '../widgets/panel.js';
import { table } from '../widgets/table.js';

/** @typedef {import('../core/types.js').Context} Context */
/** @typedef {import('../core/document.js').Program} Program */
/** @typedef {import('../core/document.js').ProgramNode} ProgramNode */

const RATES = [
  ns('time', (row) => row.total_ns),
  number('count', (row) => row.count),
  number('rate', (row) => row.flops_per_s || null, (value) => formatRate(value, 'FLOP/s')),
  number('bytes', (row) => row.bytes_per_s || null, (value) => formatRate(value, 'B/s')),
];

/** @param {Context} context */
export function programs(context) {
  const all = context.report.analyses.op_tree ?? [];
  const devices = [...new Set(all.map((one) => one.device))].sort((a, b) => a - b);
  if (!devices.length) return [];
  const { device, actions } = pickDevice(context, 'ops', devices, 'Device: programs');
  return all.filter((one) => one.device === device)
    .map((one, at) => tree(context, one, at, at === 0 ? actions : []));
}

/** @param {Context} context @param {Program} one @param {number} at @param {Node[]} actions */
function tree({ place, words }, one, at, actions) {
  const closer = h('div', { 'aria-live': 'polite' });
  // Of a scope the op in it that takes longest.
  const show = (/** @type {ProgramNode} */ row) => {
    const first = one.nodes.slice(one.nodes.indexOf(row)).find((node) => node.op?.hlo);
    if (first) put(closer, instruction(first));
  };
  const chosen = at === 0 ? one.nodes.find((row) => row.op?.hlo && (
    !place.params.name || [row.name, row.op.kernel].includes(place.params.name))) : null;
  if (chosen) show(chosen);
  const shown = one.nodes.length;
  const listed = shown < one.count_of_nodes ? `; the first ${shown} of ${one.count_of_nodes}` : '';
  const peak = one.utilisation === null ? '' : `; MFU (its matrix products) ${formatShare(one.utilisation)}`;
  const again = one.rematerialised_ns ? `; ${formatNs(one.rematerialised_ns)} computed again` : '';
  const waits = one.waiting_ns ? `; ${formatNs(one.waiting_ns)} waiting` : '';
  const id = one.program === null ? '' : `(${one.program})`;
  return panel(`Ops of ${one.module}${id} by scope, device ${one.device}`,
    { note: `${formatNs(one.total_ns)} in the steps used${peak}${waits}${again}${listed}`, actions }, table({
      label: `Ops of ${one.module}`,
      rows: one.nodes,
      columns: [
        named('scope or op', (row) => `${'· '.repeat(row.depth)}${row.name}${row.times ? ` × ${row.times}` : ''}`),
        ...RATES,
        word('bound by', (row) => row.op?.bound),
        word('remarks', (row) => [row.op && row.op.category !== 'compute' && words.categories[row.op.category]?.words,
          row.op?.rematerialised && 'computed again',
          row.op?.outside_compilation && 'on the host',
          row.op?.unknown && `work of ${row.op.unknown} not known`].filter(Boolean).join(', ') || null),
      ],
      onRow: show,
      rowLabel: 'HLO',
    }), closer);
}
