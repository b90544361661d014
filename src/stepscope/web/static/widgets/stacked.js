/** Bars of stacked parts, one per step: hover and arrow keys tell values, Enter opens the step. */

import { h, s } from '../core/dom.js';
import { hideTip, showTip } from './tip.js';
import { plot } from './plot.js';
import { barAt, ticks } from './scale.js';

/**
 * @typedef {{label: string, parts: number[], marked?: boolean}} Bar
 * @typedef {{name: string, swatch: string, waits?: boolean}} Series `swatch` is the class that colours it.
 */

const WIDTH = 1000;
const HEIGHT = 190;
const MOST_LABELS = 40;

/**
 * @param {{
 *   label: string,
 *   series: Series[],
 *   bars: Bar[],
 *   format: (value: number) => string,
 *   tell: (bar: number) => (Node|string)[],
 *   say: (bar: number) => void,
 *   open?: (bar: number) => void,
 *   cap?: number,
 * }} given `cap` is a value worth a line across.
 */
export function stackedBars(given) {
  const { bars, series } = given;
  const totals = bars.map((bar) => bar.parts.reduce((sum, part) => sum + part, 0));
  const high = scaleOf(totals, bars.map((bar) => Boolean(bar.marked)));
  const unit = WIDTH / bars.length;
  const gap = unit > 6 ? Math.min(unit * 0.15, 4) : 0;
  const paths = series.map((one) => s('path', { class: `fill ${one.swatch}`, d: '' }));
  const outlines = series.map(() => '');
  bars.forEach((bar, index) => {
    let below = 0;
    bar.parts.forEach((part, at) => {
      const shown = Math.min(part, high - below);
      if (shown > 0) outlines[at] += block(index * unit + gap / 2, unit - gap, below / high, shown / high);
      below += part;
    });
  });
  paths.forEach((path, at) => path.setAttribute('d', outlines[at]));
  const hatched = series.flatMap((one, at) => (one.waits ? [s('path', { class: 'hatch', d: outlines[at] })] : []));
  const pattern = hatch();
  const cursor = s('rect', { class: 'cursor', y: 0, width: unit, height: HEIGHT, visibility: 'hidden' });
  const svg = s(
    'svg',
    { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: 'none', class: 'bars', 'aria-hidden': 'true' },
    s('defs', null, pattern),
    paths,
    hatched,
    totals.map((total, at) => (total > high ? s('path', { class: 'broken', d: broken(at * unit, unit) }) : null)),
    cursor,
  );
  // The drawing is stretched to its room, its lines are not.
  new ResizeObserver(([{ contentRect: { width, height } }]) => {
    if (!width || !height) return;
    pattern.setAttribute('patternTransform', `scale(${WIDTH / width} ${HEIGHT / height}) rotate(45)`);
  }).observe(svg);
  const axis = ticks(0, high, 4).map((value) =>
    h('span', { class: 'tick', style: { bottom: `${(value / high) * 100}%` } }, given.format(value)),
  );
  const clipped = totals.map((total) => (total > high ? given.format(total) : null));
  return h(
    'div',
    { class: 'chart' },
    h('div', { class: 'axis' }, axis),
    interactive(given, svg, cursor, unit),
    labels(bars, clipped),
  );
}

/**
 * The name of each bar below it; of many bars those of the first and the last.
 * @param {Bar[]} bars
 * @param {(string|null)[]} clipped what each bar that goes beyond the scale amounts to
 */
function labels(bars, clipped) {
  if (bars.length > MOST_LABELS) {
    return h('div', { class: 'labels' }, h('span', null, bars[0].label),
      h('span', null, bars[bars.length - 1].label));
  }
  return h('div', { class: 'labels even' }, bars.map((bar, k) => h('span', { class: bar.marked ? 'marked' : '' },
    bar.label, clipped[k] && h('b', { class: 'clipped' }, ` ▲ ${clipped[k]}`))));
}

/**
 * @param {Parameters<typeof stackedBars>[0]} given
 * @param {SVGElement} svg
 * @param {SVGElement} cursor
 * @param {number} unit
 */
function interactive(given, svg, cursor, unit) {
  const { bars } = given;
  let at = -1;
  /** @param {number} bar @param {{x: number, y: number}|null} pointer */
  const point = (bar, pointer) => {
    at = bar;
    cursor.setAttribute('x', String(bar * unit));
    cursor.setAttribute('visibility', 'visible');
    const area = svg.getBoundingClientRect();
    const { x, y } = pointer ?? { x: area.left + ((bar + 0.5) / bars.length) * area.width, y: area.top + 20 };
    showTip(given.tell(bar), x, y);
  };
  const leave = () => {
    cursor.setAttribute('visibility', 'hidden');
    hideTip();
  };
  const keys = /** @type {Record<string, () => number>} */ ({
    ArrowRight: () => at + 1,
    ArrowLeft: () => at - 1,
    Home: () => 0,
    End: () => bars.length - 1,
  });
  return plot({
    class: 'plot',
    label: `${given.label}. Arrow keys move between bars${given.open ? ', Enter opens one' : ''}.`,
    hover: (event) => {
      const area = svg.getBoundingClientRect();
      point(barAt(event.clientX - area.left, area.width, bars.length), { x: event.clientX, y: event.clientY });
    },
    leave,
    move: (key) => {
      if (!keys[key]) return false;
      point(Math.max(0, Math.min(bars.length - 1, keys[key]())), null);
      given.say(at);
      return true;
    },
    open: () => {
      if (at < 0 || !given.open) return false;
      given.open(at);
      return true;
    },
  }, svg);
}

/** What is set apart may be this many times as high as the highest of the others before it is cut off. */
const ROOM = 1.3;

/**
 * The end of the scale: the highest of the bars that count, and of those set apart what is not much higher.
 * @param {number[]} totals
 * @param {boolean[]} apart
 */
export function scaleOf(totals, apart) {
  const most = (/** @type {number[]} */ values) => values.reduce((a, b) => Math.max(a, b), 1);
  const [all, counted] = [most(totals), most(totals.filter((_, at) => !apart[at]))];
  return counted > 1 && all > ROOM * counted ? Math.round(ROOM * counted) : all;
}

/**
 * The line through a bar that is cut off.
 * @param {number} x
 * @param {number} width
 */
function broken(x, width) {
  const [third, y] = [width / 4, HEIGHT * 0.06];
  return `M${x} ${y}l${third} -6l${third} 12l${third} -12l${third} 6`;
}

/**
 * A rectangle as a path; shares of the height count from the bottom.
 * @param {number} x
 * @param {number} width
 * @param {number} below
 * @param {number} height
 */
function block(x, width, below, height) {
  const top = (1 - below - height) * HEIGHT;
  const [w, tall] = [width.toFixed(2), (height * HEIGHT).toFixed(2)];
  return `M${x.toFixed(2)} ${top.toFixed(2)}h${w}v${tall}h-${w}z`;
}

/** Lines across what waits, so that it differs from work by more than its colour. */
export function hatch() {
  return s(
    'pattern',
    { id: 'hatch', width: 6, height: 6, patternUnits: 'userSpaceOnUse', patternTransform: 'rotate(45)' },
    s('rect', { class: 'hatch-line', width: 2.4, height: 6 }),
  );
}
