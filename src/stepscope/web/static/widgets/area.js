/** Stacked areas of bytes over time, with lines across and a mark. */

import { h, s } from '../core/dom.js';
import { hideTip, showTip } from './tip.js';
import { plot } from './plot.js';
import { ticks } from './scale.js';

const WIDTH = 1000;
const HEIGHT = 230;

/**
 * @param {{
 *   label: string,
 *   times: number[],
 *   series: {name: string, swatch: string, values: number[]}[],
 *   lines: {name: string, className: string, values: (number|null)[]}[],
 *   mark: number|null,
 *   format: (value: number) => string,
 *   formatTime: (value: number) => string,
 *   tell: (at: number) => (Node|string)[],
 *   say: (at: number) => void,
 *   open: (at: number) => void,
 * }} given `mark` is a time.
 */
export function stackedArea(given) {
  const { times, series, lines } = given;
  const [first, last] = [times[0], times[times.length - 1]];
  const sums = times.map((_, at) => series.reduce((total, one) => total + one.values[at], 0));
  const high = Math.max(1, ...sums, ...lines.flatMap((one) => one.values.map((value) => value ?? 0)));
  const x = (/** @type {number} */ time) => (last > first ? ((time - first) / (last - first)) * WIDTH : WIDTH / 2);
  const y = (/** @type {number} */ value) => HEIGHT * (1 - value / high);
  const below = times.map(() => 0);
  const areas = series.map((one) => {
    const bottom = below.slice();
    one.values.forEach((value, at) => { below[at] += value; });
    return s('path', { class: one.swatch, d: `${steps(times, below, x, y, 'M')}${back(times, bottom, x, y)}Z` });
  });
  const drawn = lines.map((one) => s('path', {
    class: `line ${one.className}`, d: steps(times, one.values.map((value) => value ?? 0), x, y, 'M'),
  }));
  const cursor = s('line', { class: 'cursor', y1: 0, y2: HEIGHT, visibility: 'hidden' });
  const svg = s(
    'svg',
    { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: 'none', 'aria-hidden': 'true' },
    areas,
    drawn,
    given.mark === null ? null : s('line', { class: 'mark', x1: x(given.mark), x2: x(given.mark), y1: 0, y2: HEIGHT }),
    cursor,
  );
  const axis = ticks(0, high, 4, true).map((value) =>
    h('span', { class: 'tick', style: { bottom: `${(value / high) * 100}%` } }, given.format(value)));
  return h(
    'div',
    { class: 'chart tall' },
    h('div', { class: 'axis' }, axis),
    readable(given, svg, cursor, x),
    h('div', { class: 'labels' }, h('span', null, given.formatTime(first)), h('span', null, given.formatTime(last))),
  );
}

/**
 * @param {Parameters<typeof stackedArea>[0]} given
 * @param {SVGElement} svg
 * @param {SVGElement} cursor
 * @param {(time: number) => number} x
 */
function readable(given, svg, cursor, x) {
  const { times } = given;
  let at = -1;
  const point = (/** @type {number} */ index, /** @type {{x: number, y: number}|null} */ pointer) => {
    at = Math.max(0, Math.min(times.length - 1, index));
    cursor.setAttribute('x1', String(x(times[at])));
    cursor.setAttribute('x2', String(x(times[at])));
    cursor.setAttribute('visibility', 'visible');
    const box = svg.getBoundingClientRect();
    const { x: left, y: top } = pointer ?? { x: box.left + (x(times[at]) / WIDTH) * box.width, y: box.top + 20 };
    showTip(given.tell(at), left, top);
  };
  const leave = () => {
    cursor.setAttribute('visibility', 'hidden');
    hideTip();
  };
  return plot({
    class: 'plot',
    label: `${given.label}. Arrow keys move in time, Enter opens the trace there.`,
    hover: (event) => {
      const box = svg.getBoundingClientRect();
      const time = times[0] + ((event.clientX - box.left) / box.width) * (times[times.length - 1] - times[0]);
      point(lastAt(times, time), { x: event.clientX, y: event.clientY });
    },
    leave,
    move: (key) => {
      const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: times.length - 1 }[key];
      if (to === undefined) return false;
      point(to, null);
      given.say(at);
      return true;
    },
    open: () => {
      if (at < 0) return false;
      given.open(at);
      return true;
    },
  }, svg);
}

/**
 * The position of the last of ascending times that is not after `time`, at least 0.
 * @param {number[]} times
 * @param {number} time
 */
export function lastAt(times, time) {
  let [low, high] = [0, times.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (times[middle] <= time) low = middle + 1;
    else high = middle;
  }
  return Math.max(0, low - 1);
}

/**
 * @param {number[]} times
 * @param {number[]} values each holds until the next
 * @param {(time: number) => number} x
 * @param {(value: number) => number} y
 * @param {string} start
 */
function steps(times, values, x, y, start) {
  let path = '';
  times.forEach((time, at) => {
    path += `${at ? 'H' : start}${x(time).toFixed(2)}${at ? 'V' : ' '}${y(values[at]).toFixed(2)}`;
  });
  return path;
}

/**
 * The same from right to left, as the lower edge.
 * @param {number[]} times
 * @param {number[]} values
 * @param {(time: number) => number} x
 * @param {(value: number) => number} y
 */
function back(times, values, x, y) {
  let path = '';
  for (let at = times.length - 1; at >= 0; at--) {
    path += `V${y(values[at]).toFixed(2)}H${x(times[at]).toFixed(2)}`;
  }
  return path;
}
