/** A small drawing of an instruction of a program, what it takes and who takes its value. */

import { h, s } from '../core/dom.js';
import { name, visible } from '../core/text.js';

const [WIDE, HIGH, GAP_X, GAP_Y] = [200, 40, 16, 44];
const LETTERS = 26;

/** @typedef {import('../core/document.js').GraphNode} Place */
/** @typedef {import('../core/document.js').ProgramGraph} Graph */

/**
 * Where each instruction is drawn: a row per distance, operands above.
 * @param {Place[]} nodes
 * @returns {{x: number, y: number}[]}
 */
export function placed(nodes) {
  const distances = [...new Set(nodes.map((node) => node.distance))].sort((a, b) => a - b);
  const rows = distances.map((distance) => nodes.map((_, at) => at).filter((at) => nodes[at].distance === distance));
  const widest = Math.max(...rows.map((row) => row.length));
  const places = nodes.map(() => ({ x: 0, y: 0 }));
  rows.forEach((row, level) => row.forEach((at, column) => {
    places[at] = { x: (column + (widest - row.length) / 2) * (WIDE + GAP_X), y: level * (HIGH + GAP_Y) };
  }));
  return places;
}

/** @param {Graph} graph */
export function hloGraph(graph) {
  const at = placed(graph.nodes);
  const width = Math.max(...at.map(({ x }) => x)) + WIDE;
  const height = Math.max(...at.map(({ y }) => y)) + HIGH;
  const lines = graph.edges.map(([from, to]) => {
    const [x1, y1, x2, y2] = [at[from].x + WIDE / 2, at[from].y + HIGH, at[to].x + WIDE / 2, at[to].y];
    return s('path', { class: 'hlo-edge', d: `M${x1} ${y1}C${x1} ${y1 + 20} ${x2} ${y2 - 20} ${x2} ${y2}` });
  });
  const boxes = graph.nodes.map((node, row) => s('g', { transform: `translate(${at[row].x} ${at[row].y})` },
    s('title', null, `${node.name}: ${node.opcode} ${node.shape}`),
    s('rect', { class: row === 0 ? 'hlo-node hlo-chosen' : 'hlo-node', width: WIDE, height: HIGH, rx: 4 }),
    s('text', { x: 8, y: 16, class: 'hlo-name' }, cut(node.name)),
    s('text', { x: 8, y: 32, class: 'hlo-shape' }, cut(`${node.opcode} ${node.shape}`))));
  const chosen = graph.nodes[0].name.slice(0, 200);
  const label = `What ${chosen} takes and who takes its value: ${graph.nodes.length} instructions`;
  return h('div', { class: 'hlo-graph' },
    s('svg', { viewBox: `-4 -4 ${width + 8} ${height + 8}`, width: width + 8, height: height + 8, role: 'img',
      'aria-label': label }, lines, boxes),
    graph.cut ? h('p', { class: 'dim' }, 'There are more around it than fit.') : null);
}

/** @param {string} text */
function cut(text) {
  return visible(text.length > LETTERS ? `${text.slice(0, LETTERS - 1)}…` : text);
}

/**
 * The text of an instruction and what is around it.
 * @param {import('../core/document.js').ProgramNode} node
 */
export function instruction({ name: title, op }) {
  return h('div', { class: 'hlo' }, h('h3', null, name(title)),
    op?.unknown ? h('p', null, `Its work is not known: no formula for ${op.unknown}.`) : null,
    h('pre', { class: 'hlo-text', tabindex: '0' }, op?.hlo ?? ''),
    op?.graph ? hloGraph(op.graph) : null);
}
