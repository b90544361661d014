/** The mouse, pens and single fingers: pan, zoom, select, measure. */
import { h, put } from '../core/dom.js';
import { formatNs } from '../core/units.js';
import { hit, placeOf } from './layout.js';
import { Fingers } from './touch.js';
import { formatValue } from './units.js';

/** @typedef {import('./app.js').App} App */
/** @typedef {import('./stage.js').Stage} Stage */

const SLOP = 4;
const SNAP = 8;

/**
 * @param {App} app
 * @param {Stage} stage
 * @param {HTMLCanvasElement} rulerCanvas
 */
export function pointer(app, stage, rulerCanvas) {
  const { element } = stage;
  const tip = h('div', { class: 'tv-tip', role: 'tooltip', hidden: true });
  element.append(tip);
  const place = (/** @type {MouseEvent} */ event) => {
    const box = element.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    return { x, y, time: app.view.begin + (x / box.width) * app.view.span, perPixel: app.view.span / box.width };
  };
  wheel(app, element, place);
  drags(app, stage, place);
  hover(app, element, tip, place);
  hair(app, element, place);
  measures(app, rulerCanvas, place);
}

/** @typedef {{x: number, y: number, time: number, perPixel: number}} Place */
/** @typedef {(event: MouseEvent) => Place} Placed */
/** @typedef {{from: Place, begin: number, end: number, scroll: number, area: boolean, moved: boolean}} Drag where it
 *   began, and whether it selects an area */

/**
 * @param {App} app
 * @param {HTMLElement} element
 * @param {Placed} place
 */
function wheel(app, element, place) {
  element.addEventListener('wheel', (event) => {
    event.preventDefault();
    const { x } = place(event);
    const width = element.clientWidth;
    const lines = event.deltaMode === 1 ? 16 : 1;
    if (event.ctrlKey || event.metaKey) {
      // A pinch arrives as a wheel with ctrl and small steps.
      const strength = Math.abs(event.deltaY) < 20 ? 0.012 : 0.0022;
      app.view.zoom(Math.exp(event.deltaY * lines * strength), x / width);
    } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      app.view.pan(((event.deltaX || event.deltaY) * lines) / width);
    } else {
      app.scrollTo(app.scroll + event.deltaY * lines);
    }
  }, { passive: false });
}

/**
 * Drag pans; with shift it selects an area, or the other way round; a click selects a slice, a double click zooms to
 * it. The middle button and a finger pan.
 * @param {App} app
 * @param {Stage} stage
 * @param {Placed} place
 */
function drags(app, stage, place) {
  const { element } = stage;
  const fingers = new Fingers(app, () => element.clientWidth);
  /** @type {Drag|null} */
  let drag = null;
  element.addEventListener('pointerdown', (event) => {
    if (event.button !== 0 && event.button !== 1) return;
    element.setPointerCapture(event.pointerId);
    element.focus({ preventScroll: true });
    const isFinger = event.pointerType === 'touch';
    drag = isFinger && fingers.put(event.pointerId, place(event)) ? null : {
      from: place(event), begin: app.view.begin, end: app.view.end, scroll: app.scroll,
      area: !isFinger && event.button === 0 && event.shiftKey !== app.dragSelects, moved: false };
  });
  element.addEventListener('pointermove', (event) => {
    const now = place(event);
    if (!fingers.move(event.pointerId, now) && drag) dragTo(app, stage, drag, now);
  });
  element.addEventListener('pointercancel', (event) => {
    fingers.lift(event.pointerId);
    drag = null;
  });
  element.addEventListener('pointerup', (event) => {
    const done = fingers.lift(event.pointerId) ? null : drag;
    drag = null;
    element.classList.remove('tv-dragging');
    if (!done) return;
    if (!done.moved) void clickAt(app, place(event));
    else if (done.area) selectBetween(app, stage, done.from, place(event));
  });
  element.addEventListener('dblclick', () => {
    const range = app.selection;
    if (range) app.view.fit(range.start, range.start + Math.max(range.dur, 1));
  });
}

/**
 * Pan, or draw the area that would be selected.
 * @param {App} app
 * @param {Stage} stage
 * @param {Drag} drag
 * @param {Place} now
 */
function dragTo(app, stage, drag, now) {
  const [dx, dy] = [now.x - drag.from.x, now.y - drag.from.y];
  drag.moved ||= Math.hypot(dx, dy) > SLOP;
  if (!drag.moved) return;
  stage.element.classList.toggle('tv-dragging', !drag.area);
  if (drag.area) {
    stage.rectangle = { x0: drag.from.x, x1: now.x, y0: drag.from.y, y1: now.y };
    stage.paint();
  } else {
    app.view.set(drag.begin - dx * now.perPixel, drag.end - dx * now.perPixel);
    app.scrollTo(drag.scroll - dy);
  }
}

/**
 * @param {App} app
 * @param {Stage} stage
 * @param {Place} from
 * @param {Place} to
 */
function selectBetween(app, stage, from, to) {
  stage.rectangle = null;
  const [begin, end] = [from.time, to.time].sort((a, b) => a - b);
  app.selectArea({ begin: Math.round(begin), end: Math.round(end), tracks: tracksBetween(app, from.y, to.y) });
}

/**
 * Select the slice there; beside all slices, nothing.
 * @param {App} app
 * @param {Place} at
 */
async function clickAt(app, at) {
  const slice = await sliceUnder(app, at, SLOP);
  if (slice || !app.area) app.select(slice);
  if (!slice) app.selectArea(null);
}

/**
 * @param {App} app
 * @param {number} from
 * @param {number} to
 */
function tracksBetween(app, from, to) {
  const [top, bottom] = [Math.min(from, to), Math.max(from, to)];
  return app.layout.items.flatMap((item) => {
    const y = item.pinned ? item.y : item.y - app.scroll;
    return y < bottom && y + item.height > top ? item.tracks.map(({ number }) => number) : [];
  });
}

/**
 * @param {App} app
 * @param {Place} at
 * @param {number} slop pixels
 * @returns {Promise<import('./navigate.js').Brief|null>}
 */
async function sliceUnder(app, at, slop) {
  const under = hit(app.layout, app.scroll, at.y);
  if (!under?.lanes.length) return null;
  return app.ask('at', { lanes: under.lanes, time: at.time, slop: at.perPixel * slop });
}

/**
 * A line at the pointer over all tracks; of several runs with the place in the step of each.
 * @param {App} app
 * @param {HTMLElement} element
 * @param {Placed} place
 */
function hair(app, element, place) {
  const text = h('span', null);
  const line = h('div', { class: 'tv-hair', 'aria-hidden': 'true', hidden: true }, text);
  element.append(line);
  element.addEventListener('pointermove', (event) => {
    const { x, time } = place(event);
    line.hidden = false;
    line.style.transform = `translateX(${Math.round(x)}px)`;
    text.textContent = app.meta.sources.length > 1 ? readings(app.meta, time).join(' · ') : '';
    text.className = x > element.clientWidth / 2 ? 'tv-left' : '';
  });
  element.addEventListener('pointerleave', () => { line.hidden = true; });
}

/**
 * Where a time is in the steps of each run.
 * @param {Pick<import('./app.js').Meta, 'sources'|'steps'>} meta
 * @param {number} time
 */
export function readings({ sources, steps }, time) {
  return sources.map(({ label }, at) => {
    const step = steps.find((one) => one.source === at && time >= one.start && time < one.end);
    return `${label} ${step ? `${step.name} + ${formatNs(Math.round(time - step.start))}` : 'outside its steps'}`;
  });
}

/**
 * @param {App} app
 * @param {HTMLElement} element
 * @param {HTMLElement} tip
 * @param {Placed} place
 */
function hover(app, element, tip, place) {
  let asked = 0;
  element.addEventListener('pointermove', async (event) => {
    const at = place(event);
    asked += 1;
    const mine = asked;
    if (event.buttons) {
      tip.hidden = true;
      return;
    }
    const lines = await told(app, at);
    if (mine !== asked) return;
    tip.hidden = !lines.length;
    put(tip, lines.map((line, row) => h('div', { class: row ? 'tv-dim' : 'tv-strong' }, line)));
    const room = element.clientWidth;
    tip.style.transform = `translate(${at.x + 14 + tip.offsetWidth > room ? at.x - tip.offsetWidth - 8 : at.x + 14}px,
      ${Math.min(at.y + 14, Math.max(0, element.clientHeight - tip.offsetHeight - 4))}px)`;
  });
  element.addEventListener('pointerleave', () => {
    asked += 1;
    tip.hidden = true;
  });
}

/**
 * @param {App} app
 * @param {Place} at
 * @returns {Promise<string[]>}
 */
async function told(app, at) {
  const under = hit(app.layout, app.scroll, at.y);
  if (!under) return [];
  if (under.item.counter) {
    const { counter } = under.item;
    const sample = await app.ask('sample', { counter: counter.number, time: at.time, span: at.perPixel });
    if (!sample) return [];
    const value = (/** @type {number} */ one) => formatValue(one, counter.unit);
    return [`${counter.label}: ${value(sample.value)}`,
      sample.count > 1 ? `${value(sample.low)} to ${value(sample.high)} in ${sample.count} samples here` : '',
      Number.isFinite(sample.change) ? `changed by ${value(sample.change)}` : ''].filter(Boolean);
  }
  const slice = await sliceUnder(app, at, SLOP);
  if (!slice) return [];
  const what = slice.kind.replaceAll('_', ' ');
  return [slice.name.slice(0, 160), `${formatNs(slice.dur)} · ${what}${slice.category ? ` · ${slice.category}` : ''}`];
}

/**
 * Dragging on the ruler measures time; ends snap to edges of slices.
 * @param {App} app
 * @param {HTMLCanvasElement} canvas
 * @param {Placed} place
 */
function measures(app, canvas, place) {
  let from = NaN;
  canvas.addEventListener('pointerdown', (event) => {
    canvas.setPointerCapture(event.pointerId);
    from = place(event).time;
  });
  canvas.addEventListener('pointermove', (event) => {
    if (Number.isNaN(from)) return;
    const now = place(event).time;
    app.measure = { begin: Math.min(from, now), end: Math.max(from, now) };
    app.emit('area');
  });
  canvas.addEventListener('pointerup', async (event) => {
    const { time, perPixel } = place(event);
    const [begin, end] = await Promise.all([from, time].map((one) => snapped(app, one, perPixel * SNAP)));
    from = NaN;
    app.area = null;
    const measured = Math.abs(end - begin) > perPixel * 2
      ? { begin: Math.min(begin, end), end: Math.max(begin, end) } : null;
    if (measured && app.selection) app.select(null);  // Which ends what was measured before.
    app.measure = measured;
    app.emit('area');
    if (app.tab === 'details') app.emit('tab');
    if (app.measure) app.say(`${formatNs(app.measure.end - app.measure.begin)} measured`);
  });
}

/**
 * The nearest edge of a slice in sight, else the time itself.
 * @param {App} app
 * @param {number} time
 * @param {number} slop
 */
async function snapped(app, time, slop) {
  const lanes = app.layout.items.flatMap((item) => item.lanes).filter((lane) => {
    const at = placeOf(app.layout, lane);
    return at && (at.item.pinned || (at.y >= app.scroll && at.y < app.scroll + app.height));
  }).slice(0, 60);
  const slices = await Promise.all(lanes.map((lane) => app.ask('at', { lanes: [lane], time, slop })));
  const edges = slices.flatMap((one) => (one ? [one.start, one.start + one.dur] : []));
  const near = edges.filter((edge) => Math.abs(edge - time) <= slop)
    .sort((a, b) => Math.abs(a - time) - Math.abs(b - time));
  return near[0] ?? Math.round(time);
}
