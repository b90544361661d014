/** The steps of the profile as a strip: choosing a range of it limits every page to those steps. */

import { h, s } from '../core/dom.js';
import { formatNs } from '../core/units.js';
import { barAt } from './scale.js';
import { scaleOf } from './stacked.js';
import { hideTip, showTip } from './tip.js';

const WIDTH = 1000;
const HEIGHT = 30;

/** @typedef {import('../core/types.js').Step} Step */

/**
 * @param {Step[]} steps
 * @param {Record<string, string>} names
 * @param {[number, number]|null} chosen positions of the first and last step
 * @param {(range: [number, number]|null) => void} choose
 */
export function strip(steps, names, chosen, choose) {
  const unit = WIDTH / steps.length;
  const all = /** @type {[number, number]} */ ([0, steps.length - 1]);
  let range = chosen ?? all;
  const isAll = () => range[0] === all[0] && range[1] === all[1];
  const window_ = s('rect', { class: 'window', y: 0, height: HEIGHT });
  const text = h('span', { class: 'range' });
  const clear = h('button', { type: 'button', onclick: () => choose(null) }, 'All steps');
  const draw = () => {
    const [low, last] = range;
    window_.setAttribute('x', String(low * unit));
    window_.setAttribute('width', String((last - low + 1) * unit));
    const [a, b] = range.map((at) => names[String(steps[at].index)]);
    text.textContent = isAll() ? `${steps.length} steps` : low === last ? `step ${a}` : `steps ${a} to ${b}`;
    // It keeps its room: the strip must not move under the mouse.
    clear.style.visibility = isAll() ? 'hidden' : 'visible';
    area.setAttribute('aria-valuetext', text.textContent);
  };
  const finish = () => choose(isAll() ? null : range);
  const area = slider(bars(steps, unit, window_), steps, {
    low: range[0],
    drag: (low, last) => {
      range = [low, last];
      draw();
    },
    finish,
    tell: ({ index, dur_ns, complete, slow }, event) => {
      const why = !complete ? ', not complete' : slow ? ', much longer than usual' : '';
      showTip([`Step ${names[String(index)]}: ${formatNs(dur_ns)}${why}`], event.clientX, event.clientY);
    },
    press: (key, endOnly) => {
      const by = { ArrowLeft: -1, ArrowRight: 1 }[key];
      if (key === 'Escape') choose(null);
      else if (by !== undefined) {
        range = moved(range[0], range[1], by, endOnly, steps.length);
        finish();
      } else return false;
      return true;
    },
  });
  draw();
  return h('section', { class: 'strip', 'aria-label': 'Steps' }, h('span', { class: 'dim' }, 'Steps'), area, text,
    clear);
}

/**
 * A bar for each step: those that are not whole and those that are slow look apart.
 * @param {Step[]} steps
 * @param {number} unit
 * @param {SVGElement} over
 */
function bars(steps, unit, over) {
  const high = scaleOf(steps.map((step) => step.dur_ns), steps.map((step) => step.slow || !step.complete));
  const bar = (/** @type {string} */ className, /** @type {(step: Step) => boolean} */ of) => (
    s('path', { class: className, d: steps.map((step, at) => (
      of(step) ? block(at * unit, unit, Math.min(1, step.dur_ns / high)) : '')).join('') }));
  return s(
    'svg',
    { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: 'none', 'aria-hidden': 'true' },
    bar('step-bar', (step) => step.complete && !step.slow),
    bar('step-bar partial', (step) => !step.complete),
    bar('step-bar slow', (step) => step.complete && step.slow),
    over,
  );
}

/**
 * Where a range is dragged or moved by keys.
 * @param {SVGElement} svg
 * @param {Step[]} steps
 * @param {{low: number, drag: (low: number, last: number) => void, finish: () => void,
 *   tell: (step: Step, event: PointerEvent) => void, press: (key: string, endOnly: boolean) => boolean}} acts `drag`:
 *   the range so far, until `finish`; `press`: whether the key does something here
 */
function slider(svg, steps, { low, drag, finish, tell, press }) {
  /** Where the drag began. @type {number|null} */
  let from = null;
  /** @param {PointerEvent} event */
  const position = (event) => {
    const box = svg.getBoundingClientRect();
    return barAt(event.clientX - box.left, box.width, steps.length);
  };
  const area = h(
    'div',
    {
      class: 'strip-area',
      tabindex: 0,
      role: 'slider',
      'aria-label': 'Range of steps. Left and right move it, with Shift they change its end.',
      'aria-valuemin': 0,
      'aria-valuemax': steps.length - 1,
      'aria-valuenow': low,
      onpointerdown: (/** @type {PointerEvent} */ event) => {
        from = position(event);
        area.setPointerCapture(event.pointerId);
        drag(from, from);
      },
      onpointermove: (/** @type {PointerEvent} */ event) => {
        const at = position(event);
        tell(steps[at], event);
        if (from !== null) drag(Math.min(from, at), Math.max(from, at));
      },
      onpointerup: () => {
        from = null;
        finish();
      },
      onpointerleave: hideTip,
      onkeydown: (/** @type {KeyboardEvent} */ event) => {
        if (press(event.key, event.shiftKey)) event.preventDefault();
      },
    },
    svg,
  );
  return area;
}

/**
 * The range after a key: moved as a whole, or its end alone; a range of all steps becomes its first or last.
 * @param {number} low
 * @param {number} last
 * @param {number} by
 * @param {boolean} endOnly
 * @param {number} count
 * @returns {[number, number]}
 */
export function moved(low, last, by, endOnly, count) {
  const within = (/** @type {number} */ at) => Math.max(0, Math.min(count - 1, at));
  if (endOnly) return [low, Math.max(low, within(last + by))];
  if (low === 0 && last === count - 1) return by > 0 ? [0, 0] : [count - 1, count - 1];
  if (within(low + by) !== low + by || within(last + by) !== last + by) return [low, last];
  return [low + by, last + by];
}

/** @param {number} x @param {number} width @param {number} share */
function block(x, width, share) {
  const w = Math.max(width * 0.85, 0.4);
  return `M${x.toFixed(2)} ${HEIGHT}v${(-share * HEIGHT).toFixed(2)}h${w.toFixed(2)}V${HEIGHT}z`;
}
