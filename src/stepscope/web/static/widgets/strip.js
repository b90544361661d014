/** The steps of the profile as a strip: choosing a range of it limits every page to those steps. */

import { h, s } from '../core/dom.js';
import { formatNs } from '../core/units.js';
import { barAt } from './scale.js';
import { scaleOf } from './stacked.js';
import { hideTip, showTip } from './tip.js';

const WIDTH = 1000;
const HEIGHT = 30;

/**
 * @param {import('../core/types.js').Step[]} steps
 * @param {Record<string, string>} names
 * @param {[number, number]|null} chosen positions of the first and last step
 * @param {(range: [number, number]|null) => void} choose
 */
export function strip(steps, names, chosen, choose) {
  const high = scaleOf(steps.map((step) => step.dur_ns), steps.map((step) => step.slow || !step.complete));
  const unit = WIDTH / steps.length;
  let low = chosen?.[0] ?? 0;
  let last = chosen?.[1] ?? steps.length - 1;
  /** @type {number|null} */
  let from = null;
  const bars = (/** @type {(step: import('../core/types.js').Step) => boolean} */ of) =>
    steps.map((step, at) => (of(step) ? block(at * unit, unit, Math.min(1, step.dur_ns / high)) : '')).join('');
  const window_ = s('rect', { class: 'window', y: 0, height: HEIGHT });
  const svg = s(
    'svg',
    { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: 'none', 'aria-hidden': 'true' },
    s('path', { class: 'step-bar', d: bars((step) => step.complete && !step.slow) }),
    s('path', { class: 'step-bar partial', d: bars((step) => !step.complete) }),
    s('path', { class: 'step-bar slow', d: bars((step) => step.complete && step.slow) }),
    window_,
  );
  const text = h('span', { class: 'range' });
  const clear = h('button', { type: 'button', onclick: () => choose(null) }, 'All steps');
  const draw = () => {
    window_.setAttribute('x', String(low * unit));
    window_.setAttribute('width', String((last - low + 1) * unit));
    const all = low === 0 && last === steps.length - 1;
    const [a, b] = [low, last].map((at) => names[String(steps[at].index)]);
    text.textContent = all ? `${steps.length} steps` : low === last ? `step ${a}` : `steps ${a} to ${b}`;
    clear.style.visibility = all ? 'hidden' : 'visible'; // It keeps its room: the strip must not move under the mouse.
    area.setAttribute('aria-valuetext', text.textContent);
  };
  const finish = () => choose(low === 0 && last === steps.length - 1 ? null : [low, last]);
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
        [low, last] = [from, from];
        area.setPointerCapture(event.pointerId);
        draw();
      },
      onpointermove: (/** @type {PointerEvent} */ event) => {
        const at = position(event);
        const step = steps[at];
        const why = !step.complete ? ', not complete' : step.slow ? ', much longer than usual' : '';
        showTip([`Step ${names[String(step.index)]}: ${formatNs(step.dur_ns)}${why}`], event.clientX, event.clientY);
        if (from === null) return;
        [low, last] = [Math.min(from, at), Math.max(from, at)];
        draw();
      },
      onpointerup: () => {
        from = null;
        finish();
      },
      onpointerleave: hideTip,
      onkeydown: (/** @type {KeyboardEvent} */ event) => {
        const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
        if (event.key === 'Escape') choose(null);
        else if (by !== undefined) {
          [low, last] = moved(low, last, by, event.shiftKey, steps.length);
          finish();
        } else return;
        event.preventDefault();
      },
    },
    svg,
  );
  draw();
  return h('section', { class: 'strip', 'aria-label': 'Steps' }, h('span', { class: 'dim' }, 'Steps'), area, text,
    clear);
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
