/** A grid of values, rows by columns, the darker the larger: hover and arrow keys tell values, Enter opens a cell. */

import { h, s } from '../core/dom.js';
import { hideTip, showTip } from './tip.js';
import { plot } from './plot.js';
import { barAt } from './scale.js';

const LEVELS = 8;
/** Rows are so high that the label of each stands beside it, and become lower where there are many. */
const ROW_PIXELS = { most: 24, least: 15 };
const HIGHEST_PIXELS = 560;
const MOST_LABELS = 40;
/** Of more columns the cells are too narrow for their values. */
const MOST_VALUES = 16;
/** Of more columns the lines between cells would cover them. */
const MOST_LINED = 120;

/**
 * @typedef {(number|null)[][]} Values by row and column; null is a cell without one.
 * @param {{
 *   label: string,
 *   rows: string[],
 *   columns: string[],
 *   values: Values,
 *   colour: string,
 *   fromLeast?: boolean,
 *   format: (value: number) => string,
 *   tell: (row: number, column: number) => (Node|string)[],
 *   say: (row: number, column: number) => void,
 *   open?: (row: number, column: number) => void,
 *   strong?: (row: number) => boolean,
 * }} given `rows` are no more than can be seen one by one; `colour` is a class that fills; `fromLeast`: the scale
 *   begins at the least value, not at 0; `strong`: whose label stands out.
 */
export function heatmap(given) {
  const { rows, columns, values } = given;
  const all = values.flat().filter((value) => value !== null);
  const least = given.fromLeast && all.length ? all.reduce((a, b) => Math.min(a, b)) : 0;
  const most = all.reduce((a, b) => Math.max(a, b), 0);
  const cursor = s('rect', { class: 'cursor', width: 1, height: 1, visibility: 'hidden' });
  const svg = s('svg', { viewBox: `0 0 ${columns.length} ${rows.length}`, preserveAspectRatio: 'none',
    'aria-hidden': 'true' }, cells(given, least, most), cursor);
  const spelled = columns.length <= MOST_VALUES;
  const room = Math.max(ROW_PIXELS.least, Math.min(ROW_PIXELS.most, Math.floor(HIGHEST_PIXELS / rows.length)));
  const height = `${rows.length * room}px`;
  return h(
    'div',
    { class: columns.length > MOST_LINED ? 'heat' : 'heat lined' },
    h('div', { class: 'heat-rows', style: { height } }, rows.map((row, at) => (
      given.strong?.(at) ? h('b', null, row) : h('span', null, row)))),
    grid(given, svg, cursor, height, spelled ? texts(given) : null),
    h('div', { class: `labels ${columns.length <= MOST_LABELS ? 'even' : ''}` },
      ends(columns).map((column) => h('span', null, column))),
    h('div', { class: 'heat-key dim' }, given.format(least), h('span', { class: 'heat-scale' },
      Array.from({ length: LEVELS }, (_, level) =>
        h('i', { class: given.colour, style: { opacity: opacity(level + 1) } }))), given.format(most)),
  );
}

/**
 * The level of a value among 0 (nothing) to 8; of a scale that begins above 0 the least value has the first.
 * @param {number|null} value
 * @param {number} most
 * @param {number} [least]
 */
export function levelOf(value, most, least = 0) {
  if (value !== null && least > 0) return Math.max(1, Math.ceil((value - least) / (most - least || 1) * LEVELS));
  return value === null || value <= 0 || most <= 0 ? 0 : Math.ceil(Math.min(1, value / most) * LEVELS);
}

/** @param {number} level */
function opacity(level) {
  return (level / LEVELS * 0.62).toFixed(3);
}

/** @param {string[]} names */
function ends(names) {
  return names.length <= MOST_LABELS ? names : [names[0], names[names.length - 1]];
}

/** @param {Parameters<typeof heatmap>[0]} given @param {number} least @param {number} most */
function cells({ values, colour }, least, most) {
  const outlines = Array.from({ length: LEVELS + 1 }, () => '');
  values.forEach((row, y) => row.forEach((value, x) => {
    if (value !== null) outlines[levelOf(value, most, least)] += `M${x} ${y}h1v1h-1z`;
  }));
  return outlines.map((d, level) => (level ? s('path', { class: colour, d, 'fill-opacity': opacity(level) })
    : s('path', { class: 'heat-nothing', d })));
}

/** @param {Parameters<typeof heatmap>[0]} given */
function texts({ values, columns, format }) {
  return h('div', { class: 'heat-values', 'aria-hidden': 'true',
    style: { 'grid-template-columns': `repeat(${columns.length}, 1fr)` } },
  values.flat().map((value) => h('span', null, value ? h('b', null, format(value)) : null)));
}

/**
 * @param {Parameters<typeof heatmap>[0]} given
 * @param {SVGElement} svg
 * @param {SVGElement} cursor
 * @param {string} height
 * @param {HTMLElement|null} over
 */
function grid(given, svg, cursor, height, over) {
  const { rows, columns } = given;
  let [row, column] = [-1, -1];
  /** @param {number} y @param {number} x @param {{x: number, y: number}|null} pointer */
  const point = (y, x, pointer) => {
    [row, column] = [Math.max(0, Math.min(rows.length - 1, y)), Math.max(0, Math.min(columns.length - 1, x))];
    cursor.setAttribute('x', String(column));
    cursor.setAttribute('y', String(row));
    cursor.setAttribute('visibility', 'visible');
    const area = svg.getBoundingClientRect();
    const at = pointer ?? {
      x: area.left + ((column + 0.5) / columns.length) * area.width,
      y: area.top + ((row + 0.5) / rows.length) * area.height,
    };
    showTip(given.tell(row, column), at.x, at.y);
  };
  const leave = () => {
    cursor.setAttribute('visibility', 'hidden');
    hideTip();
  };
  const moves = /** @type {Record<string, [number, number]>} */ ({
    ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0],
    Home: [0, -columns.length], End: [0, columns.length],
  });
  return plot({
    class: `heat-plot ${given.open ? 'opens' : ''}`,
    style: { height },
    label: `${given.label}. Arrow keys move between cells${given.open ? ', Enter opens one' : ''}.`,
    hover: (event) => {
      const area = svg.getBoundingClientRect();
      point(barAt(event.clientY - area.top, area.height, rows.length),
        barAt(event.clientX - area.left, area.width, columns.length), { x: event.clientX, y: event.clientY });
    },
    leave,
    move: (key) => {
      const by = moves[key];
      if (!by) return false;
      point(row < 0 ? 0 : row + by[0], column < 0 ? 0 : column + by[1], null);
      given.say(row, column);
      return true;
    },
    open: () => {
      if (row < 0 || !given.open) return false;
      given.open(row, column);
      return true;
    },
  }, svg, over);
}
