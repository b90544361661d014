/** The canvas: asks for frames, and draws over them what moves on its own (names, selection, arrows, measures). */
import { h } from '../core/dom.js';
import { inkOn } from './colours.js';
import { frameRows, placeOf } from './layout.js';
import { cut, shortName } from './names.js';
import { drawArrows, drawMarks, drawNotes, strokeLine } from './overlay.js';
import { LABEL_FIELDS } from './raster.js';

/** @typedef {import('./app.js').App} App */
/** @typedef {{begin: number, end: number, scroll: number, pixels: ArrayBuffer, labels: Float64Array,
 *   belowCount: number, width: number, height: number}} Frame */

const FONT = '11px system-ui, sans-serif';
const CHARACTER = 6.6;
const NARROW = 5;

export class Stage {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.base = h('canvas', { class: 'tv-pixels', 'aria-hidden': 'true' });
    this.over = h('canvas', { class: 'tv-over', 'aria-hidden': 'true' });
    this.element = h('div', { class: 'tv-stage', tabindex: '0', role: 'application',
      'aria-label': 'Trace. Press question mark for the keys.' }, this.base, this.over);
    this.scale = 1;
    this.width = 0;
    this.height = 0;
    this.wanted = false;
    this.asked = false;
    this.stopped = false;
    this.frames = 0;
    /** @type {Frame|null} */
    this.frame = null;
    /** @type {import('./raster.js').Colours|null} */
    this.colours = null;
    /** @type {[number, number, number, boolean][]} */
    this.marked = [];
    /** @type {{x0: number, x1: number, y0: number, y1: number}|null} the rectangle being drawn */
    this.rectangle = null;
    app.on(['view', 'layout'], () => this.draw());
    app.on(['selection', 'area', 'notes'], () => this.paint());
    app.on(['search'], () => this.draw());
    app.on(['look'], () => this.recolour());
  }

  async recolour() {
    this.colours = (await this.app.ask('paint', this.app.look)).colours;
    this.draw();
  }

  resize() {
    const box = this.element.getBoundingClientRect();
    this.scale = Math.min(window.devicePixelRatio || 1, 2);
    this.width = Math.max(1, Math.round(box.width * this.scale));
    this.height = Math.max(1, Math.round(box.height * this.scale));
    for (const canvas of [this.base, this.over]) {
      canvas.width = this.width;
      canvas.height = this.height;
    }
    this.app.height = this.height / this.scale;
    this.app.scrollTo(this.app.scroll, true);
    this.draw();
  }

  /** Ask for a frame of what is in sight now; one at a time. */
  draw() {
    this.wanted = true;
    if (this.asked || this.stopped || this.width < 2) return;
    this.asked = true;
    requestAnimationFrame(() => this.fetch());
  }

  async fetch() {
    this.wanted = false;
    const { app, width, height, scale } = this;
    const { begin, end } = app.view;
    const scroll = Math.round(app.scroll);
    const rows = frameRows(app.layout, app.arrangement, scroll, height / scale, scale);
    try {
      const [frame, marked] = await Promise.all([
        app.ask('frame', { begin, end, width, height, scale, ...rows }),
        app.found?.count ? app.ask('marked', { begin, end, lanes: lanesOf(rows),
          apart: ((end - begin) / width) * 2 }) : []]);
      this.frame = { begin, end, scroll, width, height, ...frame };
      this.marked = marked;
      app.scaled(frame.scales);
      this.put();
      this.paint();
      this.frames += 1;
      // For tests and benchmarks: how many frames were drawn, and when the first one was.
      this.element.dataset.frames = String(this.frames);
      this.element.dataset.firstMs ??= String(Math.round(performance.now()));
      if (this.frames === 1) this.app.emit('drawn');
    } finally {
      this.asked = false;
      if (this.wanted) this.draw();
    }
  }

  put() {
    const { frame } = this;
    const context = this.base.getContext('2d', { alpha: false });
    if (!context || !frame || frame.width !== this.width || frame.height !== this.height) return;
    context.putImageData(new ImageData(new Uint8ClampedArray(frame.pixels), frame.width, frame.height), 0, 0);
  }

  /** @param {number} time @returns {number} device pixels */
  x(time) {
    const { begin, end, width } = /** @type {Frame} */ (this.frame);
    return ((time - begin) / (end - begin)) * width;
  }

  /** Draw what lies over the pixels. */
  paint() {
    const context = this.over.getContext('2d');
    if (!context || !this.frame) return;
    const style = getComputedStyle(this.element);
    const ink = property(style, '--tv-ink', '#111');
    const accent = property(style, '--tv-accent', '#1a66d0');
    const hit = property(style, '--tv-hit', '#d00');
    context.clearRect(0, 0, this.width, this.height);
    this.grid(context, style);
    this.names(context);
    this.area(context, accent);
    this.hits(context, hit);
    this.selected(context, ink, accent);
    drawArrows(this, context, accent);
    drawNotes(this, context, accent);
    drawMarks(this, context, hit);
  }

  /**
   * Bounds of the steps, the line under pinned tracks, and the groups.
   * @param {CanvasRenderingContext2D} context
   * @param {CSSStyleDeclaration} style
   */
  grid(context, style) {
    context.lineWidth = 1;
    this.stepLines(context, property(style, '--tv-line', '#ccc'));
    this.groupBands(context, property(style, '--tv-panel', '#eee'));
    this.pinnedLine(context, property(style, '--tv-accent', '#06c'));
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {string} colour
   */
  stepLines(context, colour) {
    const { app, scale } = this;
    const first = app.meta.steps.filter((step) => step.source === 0);
    if (first.length >= this.width / 6) return;
    context.strokeStyle = colour;
    context.setLineDash([2 * scale, 3 * scale]);
    for (const step of first) {
      const x = Math.round(this.x(step.start)) + 0.5;
      if (x >= 0 && x <= this.width) strokeLine(context, x, 0, x, this.height);
    }
    context.setLineDash([]);
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {string} colour
   */
  groupBands(context, colour) {
    const { scale } = this;
    const { items, pinnedHeight } = this.app.layout;
    const { scroll } = /** @type {Frame} */ (this.frame);
    context.fillStyle = colour;
    for (const item of items) {
      const y = (item.y - scroll) * scale;
      if (item.type !== 'group' || y < pinnedHeight * scale || y > this.height) continue;
      context.fillRect(0, y, this.width, item.height * scale);
    }
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {string} colour
   */
  pinnedLine(context, colour) {
    const { pinnedHeight } = this.app.layout;
    if (!pinnedHeight) return;
    const y = Math.round(pinnedHeight * this.scale) - 0.5;
    context.strokeStyle = colour;
    strokeLine(context, 0, y, this.width, y);
  }

  /** @param {CanvasRenderingContext2D} context */
  names(context) {
    const { labels, belowCount } = /** @type {Frame} */ (this.frame);
    const { scale, colours, app } = this;
    if (!colours) return;
    context.font = FONT.replace('11', String(11 * scale));
    context.textBaseline = 'middle';
    const pinned = app.layout.pinnedHeight * scale;
    for (let at = 0; at < labels.length; at += LABEL_FIELDS) {
      const [x, width, y, height, name] = labels.subarray(at, at + 5);
      if (at < belowCount && y + height / 2 < pinned) continue;
      const room = Math.floor((width / scale - 5) / CHARACTER);
      const text = cut(shortName(app.meta.names[name]), room);
      if (room < 3) continue;
      context.fillStyle = inkOn(colours.red[name], colours.green[name], colours.blue[name]);
      context.fillText(text, x + 4 * scale, y + height / 2 + 0.5);
    }
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {string} accent
   */
  area(context, accent) {
    const { app, scale, rectangle } = this;
    if (rectangle) {
      const { x0, x1, y0, y1 } = rectangle;
      context.strokeStyle = accent;
      context.lineWidth = scale;
      context.strokeRect(Math.min(x0, x1) * scale, Math.min(y0, y1) * scale, Math.abs(x1 - x0) * scale,
        Math.abs(y1 - y0) * scale);
    }
    if (!app.measure) return;
    const [x0, x1] = [this.x(app.measure.begin), this.x(app.measure.end)];
    context.fillStyle = accent;
    context.globalAlpha = 0.1;
    if (app.area) {
      for (const item of app.layout.items) {
        if (!item.tracks.some(({ number }) => app.area?.tracks.includes(number))) continue;
        const y = (item.y - (item.pinned ? 0 : /** @type {Frame} */ (this.frame).scroll)) * scale;
        context.fillRect(x0, y, x1 - x0, item.height * scale);
      }
    } else {
      context.fillRect(x0, 0, x1 - x0, this.height);
    }
    context.globalAlpha = 1;
    context.strokeStyle = accent;
    context.lineWidth = scale;
    strokeLine(context, x0, 0, x0, this.height);
    strokeLine(context, x1, 0, x1, this.height);
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {string} colour
   */
  hits(context, colour) {
    context.strokeStyle = colour;
    context.fillStyle = colour;
    context.lineWidth = 1.5 * this.scale;
    for (const [lane, start, dur, several] of this.marked) {
      const box = this.box(lane, start, dur);
      if (!box) continue;
      // An outline would hide how much of a few pixels was busy: what is so narrow is underlined, as is what stands for
      // many hits that lie close.
      if (box.width < NARROW * this.scale || several) {
        context.fillRect(box.x, box.y + box.height - 2 * this.scale, box.width, 2 * this.scale);
      } else {
        context.strokeRect(box.x, box.y, box.width, box.height);
      }
    }
  }

  /**
   * Where a slice is drawn, in device pixels; null where its track is not in the layout.
   * @param {number} lane
   * @param {number} start
   * @param {number} dur
   */
  box(lane, start, dur) {
    const place = placeOf(this.app.layout, lane);
    if (!place || !this.frame) return null;
    const { scale } = this;
    const y = (place.y - (place.item.pinned ? 0 : this.frame.scroll)) * scale;
    const [x0, x1] = [Math.max(this.x(start), -2), Math.min(this.x(start + dur), this.width + 2)];
    const hidden = !place.item.pinned && y + place.height * scale < this.app.layout.pinnedHeight * scale;
    return { x: x0, y, width: Math.max(x1 - x0, 2), height: place.height * scale, hidden };
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {string} ink
   * @param {string} accent
   */
  selected(context, ink, accent) {
    const { selection } = this.app;
    if (!selection) return;
    const box = this.box(selection.lane, selection.start, selection.dur);
    if (!box || box.hidden) return;
    context.lineWidth = 2 * this.scale;
    context.strokeStyle = ink;
    context.strokeRect(box.x, box.y, box.width, box.height);
    context.lineWidth = this.scale;
    context.strokeStyle = accent;
    context.strokeRect(box.x - 2 * this.scale, box.y - 2 * this.scale, box.width + 4 * this.scale,
      box.height + 4 * this.scale);
  }
}

/**
 * @param {CSSStyleDeclaration} style
 * @param {string} name
 * @param {string} otherwise where the page gives none
 */
function property(style, name, otherwise) {
  return style.getPropertyValue(name).trim() || otherwise;
}

/** @param {{rows: import('./engine.js').FrameRow[], pinned: import('./engine.js').FrameRow[]}} frame */
function lanesOf({ rows, pinned }) {
  return [...rows, ...pinned].flatMap((row) => row.lanes);
}
