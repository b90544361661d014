/** The roofline: work done per second over work per byte, both logarithmic, under the device's roofs. */

import { h, s } from '../core/dom.js';
import { formatRate, formatShare } from '../core/units.js';
import { decades } from './scale.js';
import { hideTip, showTip } from './tip.js';

const HEIGHT = 300;
/** Above the highest roof, for its name. */
const TOP = 18;
/** Of the drawing in its own units: on a phone it is shown smaller, so that its text must be larger. */
const SIZES = { wide: { width: 1000, text: 12 }, narrow: { width: 440, text: 17 } };
const NARROW = '(max-width: 760px)';

/** What bounds work, as the legend says it. */
const BOUNDS = /** @type {[string, string][]} */ ([
  ['compute', 'bound by computing'], ['memory', 'bound by memory'], ['neither', 'near neither roof'],
  ['unknown', 'what bounds it is not known']]);

/** @typedef {import('../core/document.js').Roof} Roof */
/** @typedef {Roof & {intensity: number, flops_per_s: number}} Placed of which both are known */

/**
 * @param {{
 *   label: string,
 *   rows: Placed[],
 *   title: (row: Placed) => string,
 *   tell: (row: Placed) => (Node|string)[],
 *   announce: (text: string) => void,
 * }} given
 */
export function roofline(given) {
  const { rows } = given;
  const { width, text } = matchMedia(NARROW).matches ? SIZES.narrow : SIZES.wide;
  const roofs = roofsOf(rows);
  const ridges = roofs.map((roof) => roof.flops / roof.bytes);
  const across = decades(Math.min(...rows.map((row) => row.intensity)), Math.max(...rows.map((row) => row.intensity),
    ...ridges));
  const up = decades(Math.min(...rows.map((row) => row.flops_per_s)), Math.max(...rows.map((row) => row.flops_per_s),
    ...roofs.map((roof) => roof.flops)));
  const x = logScale(across[0], across[across.length - 1], 0, width);
  const y = logScale(up[0], up[up.length - 1], HEIGHT, TOP);
  const longest = Math.max(...rows.map((row) => row.total_ns));
  const dots = rows.map((row) => s('circle', {
    class: `dot bound-${boundOf(row)}`,
    cx: x(row.intensity),
    cy: y(row.flops_per_s),
    r: 3.5 + 12 * Math.sqrt(row.total_ns / longest),
  }));
  const svg = s(
    'svg',
    { viewBox: `0 0 ${width} ${HEIGHT}`, 'aria-hidden': 'true', class: 'scatter' },
    across.map((value) => s('line', { class: 'grid', x1: x(value), x2: x(value), y1: 0, y2: HEIGHT })),
    up.map((value) => s('line', { class: 'grid', x1: 0, x2: width, y1: y(value), y2: y(value) })),
    roofs.map((roof) => s('path', { class: 'roof', d: roofPath(roof, across, x, y) })),
    dots,
    spread(roofs.map((roof) => y(roof.flops) - 5), text + 2).map((above, at) => s('text', { class: 'roof-name',
      'font-size': text, x: width - 4, y: above, 'text-anchor': 'end' },
    `${roofs[at].name} ${formatRate(roofs[at].flops, 'FLOP/s')}`)),
  );
  const chart = h(
    'div',
    { class: 'chart roofed' },
    h('div', { class: 'axis' }, up.map((value) => h('span',
      { class: 'tick', style: { bottom: `${(1 - y(value) / HEIGHT) * 100}%` } }, formatRate(value, 'FLOP/s')))),
    plot(given, rows, svg, dots),
    h('div', { class: 'labels' }, across.map((value) => h('span', null, String(Number(value.toPrecision(3)))))),
    h('div', { class: 'labels' }, h('span', null, 'FLOPs per byte')),
  );
  return h('div', null, chart, keys(rows));
}

/** @param {Roof[]} rows */
function keys(rows) {
  const shown = BOUNDS.filter(([id]) => rows.some((row) => boundOf(row) === id));
  return h('p', { class: 'keys' }, shown.map(([id, words]) => h('span', null, s('svg',
    { class: 'dot-key', viewBox: '0 0 14 14', 'aria-hidden': 'true' },
    s('circle', { class: `dot bound-${id}`, cx: 7, cy: 7, r: 5 })), words)));
}

/** @param {Roof} row */
function boundOf(row) {
  return row.bound ?? 'unknown';
}

/**
 * Heights of lines of text, moved up where the one below would lie over them.
 * @param {number[]} heights
 * @param {number} line
 */
export function spread(heights, line) {
  const order = heights.map((_, at) => at).sort((a, b) => heights[b] - heights[a]);
  const moved = heights.slice();
  order.forEach((at, nth) => { if (nth) moved[at] = Math.min(moved[at], moved[order[nth - 1]] - line); });
  return moved;
}

/**
 * One roof per peak that rows are held against.
 * @param {Pick<Roof, 'precision'|'units'|'peak_flops_per_s'|'peak_bytes_per_s'>[]} rows
 */
export function roofsOf(rows) {
  /** @type {Map<string, {name: string, flops: number, bytes: number}>} */
  const roofs = new Map();
  for (const row of rows) {
    if (!row.peak_flops_per_s || !row.peak_bytes_per_s) continue;
    const key = `${row.peak_flops_per_s} ${row.peak_bytes_per_s}`;
    const units = row.units === 'matrix' ? 'matrix units' : 'vector units';
    if (!roofs.has(key)) {
      roofs.set(key, { name: `${row.precision ?? ''} ${units}`.trim(), flops: row.peak_flops_per_s,
        bytes: row.peak_bytes_per_s });
    }
  }
  return [...roofs.values()];
}

/**
 * @param {number} low
 * @param {number} high
 * @param {number} from
 * @param {number} to
 */
function logScale(low, high, from, to) {
  const span = Math.log(high / low) || 1;
  return (/** @type {number} */ value) => from + (Math.log(value / low) / span) * (to - from);
}

/**
 * @param {{flops: number, bytes: number}} roof
 * @param {number[]} across
 * @param {(value: number) => number} x
 * @param {(value: number) => number} y
 */
function roofPath(roof, across, x, y) {
  const [low, high] = [across[0], across[across.length - 1]];
  const ridge = Math.min(Math.max(roof.flops / roof.bytes, low), high);
  return `M${x(low)} ${y(low * roof.bytes)}L${x(ridge)} ${y(ridge * roof.bytes)}L${x(high)} ${y(roof.flops)}`;
}

/**
 * @param {Parameters<typeof roofline>[0]} given
 * @param {Placed[]} rows
 * @param {SVGElement} svg
 * @param {SVGElement[]} dots
 */
function plot(given, rows, svg, dots) {
  let at = -1;
  const point = (/** @type {number} */ index) => {
    dots[at]?.classList.remove('at');
    at = Math.max(0, Math.min(rows.length - 1, index));
    dots[at].classList.add('at');
    const box = dots[at].getBoundingClientRect();
    showTip(given.tell(rows[at]), box.right, box.bottom);
  };
  const leave = () => {
    dots[at]?.classList.remove('at');
    hideTip();
  };
  dots.forEach((dot, index) => dot.addEventListener('pointerenter', () => point(index)));
  return h(
    'div',
    {
      class: 'plot',
      tabindex: 0,
      role: 'application',
      'aria-roledescription': 'chart',
      'aria-label': `${given.label}. Arrow keys move between points, longest first.`,
      onpointerleave: leave,
      onblur: leave,
      onkeydown: (/** @type {KeyboardEvent} */ event) => {
        const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
        if (by === undefined) return;
        event.preventDefault();
        point(at + by);
        const row = rows[at];
        given.announce(`${given.title(row)}: ${formatRate(row.flops_per_s, 'FLOP/s')}, ${formatShare(row.flops_share)
        } of the peak, bound by ${row.bound}`);
      },
    },
    svg,
  );
}
