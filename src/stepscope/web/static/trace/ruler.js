/** The strip over the whole trace and the ruler over what is in sight. */
import { h } from '../core/dom.js';
import { formatNs } from '../core/units.js';
import { viewTime } from './clock.js';
import { cut } from './names.js';
import { formatTick } from './units.js';

/** @typedef {import('./app.js').App} App */

const STEP_ROW = 15;

/**
 * Distances between ticks: 1, 2 or 5 times a power of ten.
 * @param {number} span
 * @param {number} most ticks
 */
export function tickStep(span, most) {
  const rough = span / Math.max(1, most);
  const power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= rough) ?? power * 10;
}

/**
 * A canvas that follows the size of its element.
 * @param {string} name
 * @param {string} label
 */
export function sized(name, label) {
  const canvas = h('canvas', { class: name, role: 'img', 'aria-label': label });
  const fit = () => {
    const scale = Math.min(window.devicePixelRatio || 1, 2);
    const [width, height] = [canvas.clientWidth, canvas.clientHeight];
    if (canvas.width !== Math.round(width * scale)) canvas.width = Math.round(width * scale);
    if (canvas.height !== Math.round(height * scale)) canvas.height = Math.round(height * scale);
    const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext('2d'));
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, width, height);
    context.font = '11px system-ui, sans-serif';
    context.textBaseline = 'middle';
    return { context, width, height };
  };
  return { canvas, fit };
}

/** The ruler: time, and the steps in sight. @param {App} app */
export function ruler(app) {
  const { canvas, fit } = sized('tv-ruler', 'Time. Drag to measure.');
  const draw = () => {
    const { context, width, height } = fit();
    const style = getComputedStyle(canvas);
    const [ink, dim, line] = ['--tv-ink', '--tv-dim', '--tv-line'].map((name) => style.getPropertyValue(name));
    const { begin, span } = app.view;
    const x = (/** @type {number} */ time) => ((time - begin) / span) * width;
    const step = tickStep(span, width / 110);
    const zero = app.meta.begin;
    context.fillStyle = dim;
    context.strokeStyle = line;
    for (let tick = Math.ceil((begin - zero) / step) * step; tick < begin - zero + span; tick += step) {
      const at = Math.round(x(tick + zero)) + 0.5;
      context.beginPath();
      context.moveTo(at, 0);
      context.lineTo(at, height - STEP_ROW - 2);
      context.stroke();
      context.fillText(formatTick(tick, step), at + 4, (height - STEP_ROW) / 2);
    }
    steps(app, context, x, width, height, ink, style.getPropertyValue('--tv-step'));
    notes(app, context, x, style);
    measure(app, context, x, height, style.getPropertyValue('--tv-accent'));
  };
  app.on(['view', 'area', 'look', 'notes'], draw);
  return { canvas, draw };
}

/**
 * @param {App} app
 * @param {CanvasRenderingContext2D} context
 * @param {(time: number) => number} x
 * @param {number} width
 * @param {number} height
 * @param {string} ink
 * @param {string} band
 */
function steps(app, context, x, width, height, ink, band) {
  const y = height - STEP_ROW;
  const source = app.selection?.source ?? 0;
  app.meta.steps.filter((one) => one.source === source).forEach((one, at) => {
    const [x0, x1] = [Math.max(x(one.start), 0), Math.min(x(one.end), width)];
    if (x1 <= 0 || x0 >= width) return;
    context.fillStyle = band;
    context.globalAlpha = at % 2 ? 0.35 : 0.75;
    context.fillRect(x0, y, Math.max(x1 - x0, 0.5), STEP_ROW);
    context.globalAlpha = 1;
    if (x1 - x0 < 40) return;
    context.fillStyle = ink;
    context.fillText(cut(`${one.name}  ${formatNs(one.end - one.start)}`, (x1 - x0 - 8) / 6), x0 + 4, y + STEP_ROW / 2);
  });
}

/**
 * The texts of notes, as flags at their lines: over the tracks they would hide slices.
 * @param {App} app
 * @param {CanvasRenderingContext2D} context
 * @param {(time: number) => number} x
 * @param {CSSStyleDeclaration} style
 */
function notes(app, context, x, style) {
  for (const note of app.notes) {
    const text = cut(note.end === null ? note.text : `${note.text} ${formatNs(note.end - note.time)}`.trim(), 40);
    context.fillStyle = style.getPropertyValue('--tv-accent');
    context.fillRect(x(note.time), 2, context.measureText(text).width + 8, 16);
    context.fillStyle = style.getPropertyValue('--tv-bg');
    context.fillText(text, x(note.time) + 4, 10);
  }
}

/**
 * @param {App} app
 * @param {CanvasRenderingContext2D} context
 * @param {(time: number) => number} x
 * @param {number} height
 * @param {string} accent
 */
function measure(app, context, x, height, accent) {
  if (!app.measure) return;
  const [x0, x1] = [x(app.measure.begin), x(app.measure.end)];
  context.fillStyle = accent;
  context.globalAlpha = 0.25;
  context.fillRect(x0, 0, x1 - x0, height - STEP_ROW);
  context.globalAlpha = 1;
  const text = formatNs(app.measure.end - app.measure.begin);
  const width = context.measureText(text).width + 10;
  const at = Math.max(2, (x0 + x1 - width) / 2);
  context.fillRect(at, 2, width, 16);
  context.fillStyle = '#fff';
  context.fillText(text, at + 5, 10);
}

/** The strip over the whole trace. @param {App} app */
export function minimap(app) {
  const { canvas, fit } = sized('tv-minimap', 'Whole trace: busy share of each device. Drag to move the view.');
  /** @type {{label: string, source: number, share: Float32Array}[]} */
  let strips = [];
  let asked = 0;
  let drawn = false;
  const draw = () => {
    const { context, width, height } = fit();
    if (drawn && width && width !== asked) {
      asked = width;
      app.ask('overview', { width }).then((answer) => {
        strips = answer;
        draw();
      });
    }
    const style = getComputedStyle(canvas);
    const { begin, end } = app.meta;
    const x = (/** @type {number} */ time) => ((time - begin) / (end - begin)) * width;
    const each = (height - 6) / Math.max(1, strips.length);
    strips.forEach(({ share }, row) => {
      context.fillStyle = style.getPropertyValue('--tv-busy');
      const base = (row + 1) * each;
      for (let at = 0; at < share.length; at += 1) {
        const tall = share[at] * (each - 2);
        context.fillRect(at, base - tall, 1, tall);
      }
    });
    marks(app, context, x, height, style);
    context.fillStyle = style.getPropertyValue('--tv-shade');
    const [x0, x1] = [Math.max(0, x(app.view.begin)), Math.min(width, x(app.view.end))];
    context.fillRect(0, 0, x0, height);
    context.fillRect(x1, 0, width - x1, height);
    context.strokeStyle = style.getPropertyValue('--tv-accent');
    context.strokeRect(x0 + 0.5, 0.5, Math.max(x1 - x0 - 1, 2), height - 1);
  };
  app.on(['view', 'look', 'search', 'notes'], draw);
  // The tracks come first.
  app.on(['drawn'], () => {
    drawn = true;
    draw();
  });
  drag(app, canvas);
  return { canvas, draw };
}

/**
 * Hits of the search, evidence of the findings and notes.
 * @param {App} app
 * @param {CanvasRenderingContext2D} context
 * @param {(time: number) => number} x
 * @param {number} height
 * @param {CSSStyleDeclaration} style
 */
function marks(app, context, x, height, style) {
  context.fillStyle = style.getPropertyValue('--tv-warn');
  for (const source of app.meta.sources) {
    for (const finding of source.header.findings) {
      for (const piece of finding.evidence) {
        const [x0, x1] = [piece.start_ns, piece.end_ns].map((time) => x(viewTime(source, time)));
        context.fillRect(x0, height - 3, Math.max(x1 - x0, 2), 3);
      }
    }
  }
  const bins = app.found?.bins;
  if (bins?.length) {
    context.fillStyle = style.getPropertyValue('--tv-hit');
    const wide = x(app.meta.end) / bins.length;
    bins.forEach((count, at) => { if (count) context.fillRect(at * wide, height - 7, Math.max(wide, 1), 3); });
  }
  context.fillStyle = style.getPropertyValue('--tv-accent');
  for (const note of app.notes) context.fillRect(x(note.time) - 1, 0, 2, height);
}

/**
 * @param {App} app
 * @param {HTMLCanvasElement} canvas
 */
function drag(app, canvas) {
  const time = (/** @type {PointerEvent} */ event) => {
    const box = canvas.getBoundingClientRect();
    return app.meta.begin + ((event.clientX - box.left) / box.width) * (app.meta.end - app.meta.begin);
  };
  let from = NaN;
  let moves = false;
  canvas.addEventListener('pointerdown', (event) => {
    canvas.setPointerCapture(event.pointerId);
    from = time(event);
    // Inside the view the view is dragged, outside a new one is drawn.
    const narrow = app.view.span < (app.meta.end - app.meta.begin) * 0.95;
    moves = narrow && from >= app.view.begin && from <= app.view.end;
  });
  canvas.addEventListener('pointermove', (event) => {
    if (Number.isNaN(from)) return;
    const now = time(event);
    if (moves) {
      app.view.set(app.view.begin + now - from, app.view.end + now - from);
      from = now;
    } else if (Math.abs(now - from) > (app.meta.end - app.meta.begin) / 300) {
      app.view.set(Math.min(from, now), Math.max(from, now));
    }
  });
  const stop = (/** @type {PointerEvent} */ event) => {
    const now = time(event);
    if (!moves && Math.abs(now - from) <= (app.meta.end - app.meta.begin) / 300) {
      app.view.set(now - app.view.span / 2, now + app.view.span / 2);
    }
    from = NaN;
  };
  canvas.addEventListener('pointerup', stop);
}
