/** A dot for each measured value, in rows above one axis, with each row's mean: hover and arrow keys tell values. */

import { h, s } from '../core/dom.js';
import { hideTip, showTip } from './tip.js';
import { plot } from './plot.js';
import { ticks } from './scale.js';

const WIDTH = 1000;
const ROW = 56;

/**
 * @typedef {{label: string, values: number[], mean: number|null, band: [number, number]|null}} DotRow `band` is an
 *   interval drawn behind the dots.
 * @param {{
 *   label: string,
 *   rows: DotRow[],
 *   format: (value: number) => string,
 *   tell: (row: number, at: number) => string,
 *   announce: (text: string) => void,
 * }} given
 */
export function dots(given) {
  const { rows, format } = given;
  const [low, high] = extent(rows);
  const x = (/** @type {number} */ value) => ((value - low) / (high - low)) * WIDTH;
  const all = rows.flatMap((row, y) => row.values.map((value, at) => ({ row: y, at, value })));
  const circles = all.map(({ row, at, value }) => s('circle', {
    class: `dot ${row ? 'dot-after' : 'dot-before'}`, cx: x(value), cy: row * ROW + ROW / 2 + offset(at), r: 5,
  }));
  const marks = ticks(low, high, 7);
  const svg = s(
    'svg',
    { viewBox: `-8 0 ${WIDTH + 16} ${rows.length * ROW}`, 'aria-hidden': 'true' },
    marks.map((value) => s('path', { class: 'grid', d: `M${x(value)} 0v${rows.length * ROW}` })),
    rows.map((row, y) => [
      row.band && s('rect', { class: 'dots-band', x: x(row.band[0]), y: y * ROW + 4, height: ROW - 8,
        width: Math.max(2, x(row.band[1]) - x(row.band[0])) }),
      row.mean !== null && s('path', { class: 'dots-mean', d: `M${x(row.mean)} ${y * ROW + 5}v${ROW - 10}` }),
    ]).flat(),
    circles,
  );
  const labels = marks.map((value) => h('span', { style: { left: `${((x(value) + 8) / (WIDTH + 16)) * 100}%` } },
    format(value)));
  return h(
    'div',
    { class: 'dots' },
    h('div', { class: 'dots-rows' }, rows.map((row) => h('span', null, row.label))),
    readable(given, svg, all, circles),
    h('div', { class: 'dots-axis dim' }, labels),
  );
}

/**
 * What the axis holds: every value and band, and room beside them.
 * @param {DotRow[]} rows
 * @returns {[number, number]}
 */
export function extent(rows) {
  const values = rows.flatMap((row) => [...row.values, ...(row.band ?? []), ...(row.mean === null ? [] : [row.mean])]);
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) [low, high] = [Math.min(low, value), Math.max(high, value)];
  if (!values.length) return [0, 1];
  const room = Math.max((high - low) * 0.04, high * 0.002, 1);
  return [Math.max(0, low - room), high + room];
}

/**
 * Up or down from the middle of a row, so that values alike do not hide each other.
 * @param {number} at
 */
function offset(at) {
  return ((at * 7) % 5 - 2) * 7;
}

/**
 * @param {Parameters<typeof dots>[0]} given
 * @param {SVGElement} svg
 * @param {{row: number, at: number, value: number}[]} all
 * @param {SVGElement[]} circles
 */
function readable(given, svg, all, circles) {
  let chosen = -1;
  const leave = () => {
    circles[chosen]?.classList.remove('at');
    hideTip();
  };
  /** @param {number} index */
  const point = (index) => {
    leave();
    chosen = index;
    circles[chosen].classList.add('at');
    const { left, top, width } = circles[chosen].getBoundingClientRect();
    showTip([given.tell(all[chosen].row, all[chosen].at)], left + width / 2, top);
  };
  return plot({
    class: 'dots-plot',
    label: `${given.label}. Arrow keys move between steps.`,
    hover: (event) => {
      const at = circles.indexOf(/** @type {SVGCircleElement} */ (event.target));
      if (at >= 0) point(at);
      else leave();
    },
    leave,
    move: (key) => {
      const by = { ArrowRight: 1, ArrowLeft: -1, Home: -all.length, End: all.length }[key];
      if (by === undefined || !all.length) return false;
      point(Math.max(0, Math.min(all.length - 1, chosen + by)));
      given.announce(given.tell(all[chosen].row, all[chosen].at));
      return true;
    },
  }, svg);
}
