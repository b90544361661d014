/**
 * Draws lanes into pixels on the processor. A pixel's colour is the mix of what ran in its stretch of time and the
 * background, in their true shares: idle time stays visible however far one zooms out. So that what takes less than a
 * pixel does not fade to nothing, the foot of its lane has its full colour wherever anything ran.
 */
import { firstAfter, levelFor } from './lod.js';

/** @typedef {{red: Float32Array, green: Float32Array, blue: Float32Array}} Colours per name */
/** @typedef {{levels: import('./lod.js').Level[], first: number, y: number, height: number,
 *   tint: [number, number, number]|null}} Row `first` is the lane's first slice */
/** @typedef {{pixels: Uint32Array, width: number, height: number, begin: number, end: number}} Target */

/** What a label needs: x, width, y, height (device pixels), name and slice. */
export const LABEL_FIELDS = 6;
const LABEL_PIXELS = 28;
const EDGE_PIXELS = 4;
const TICK = 0.35;
/** A pixel that is busy for less than this share gets a foot, so high a part of its lane; lower lanes have no room. */
const FAINT = 0.7;
const FOOT = 0.25;
const FOOT_PIXELS = 2;
const ROOM_PIXELS = 6;

export class Raster {
  constructor() {
    this.cover = new Float32Array(0);
    this.red = this.cover;
    this.green = this.cover;
    this.blue = this.cover;
    this.edge = new Uint8Array(0);
  }

  /**
   * @param {Target} target
   * @param {Row[]} rows
   * @param {Colours} colours
   * @param {number} background as 0xbbggrr
   * @param {number} scale device pixels per CSS pixel
   * @returns {Float64Array} the labels
   */
  draw(target, rows, colours, background, scale) {
    const { width } = target;
    if (this.cover.length !== width + 2) {
      this.cover = new Float32Array(width + 2);
      this.red = new Float32Array(width + 2);
      this.green = new Float32Array(width + 2);
      this.blue = new Float32Array(width + 2);
      this.edge = new Uint8Array(width + 2);
    }
    /** @type {number[]} */
    const labels = [];
    for (let at = 0; at < rows.length; at += 1) {
      const row = rows[at];
      if (row.y >= target.height || row.y + row.height <= 0) continue;
      this.accumulate(target, row, colours, labels, scale);
      // Lanes at the same height are lanes of one collapsed track: they are drawn as one.
      const next = rows[at + 1];
      if (next && next.y === row.y && next.height === row.height) continue;
      this.write(target, row, background, scale);
      this.clear();
    }
    return Float64Array.from(labels);
  }

  clear() {
    this.cover.fill(0);
    this.red.fill(0);
    this.green.fill(0);
    this.blue.fill(0);
    this.edge.fill(0);
  }

  /**
   * @param {Target} target
   * @param {Row} row
   * @param {Colours} colours
   * @param {number[]} labels
   * @param {number} scale
   */
  // eslint-disable-next-line complexity -- split into functions, a frame took 7 to 29 % more CPU (640,000 slices)
  accumulate(target, row, colours, labels, scale) {
    const { begin, end, width } = target;
    const perPixel = (end - begin) / width;
    const per = 1 / perPixel;
    const level = levelFor(row.levels, perPixel);
    const { start, dur, busy, name, count } = level;
    const { cover, red, green, blue, edge } = this;
    const { tint } = row;
    const wide = LABEL_PIXELS * scale;
    for (let i = firstAfter(level, begin); i < count; i += 1) {
      const from = start[i];
      if (from >= end) break;
      const code = name[i];
      const r = tint ? tint[0] : colours.red[code];
      const g = tint ? tint[1] : colours.green[code];
      const b = tint ? tint[2] : colours.blue[code];
      let x0 = (from - begin) * per;
      let x1 = x0 + dur[i] * per;
      const first = x0 < 0 ? 0 : Math.floor(x0);
      if (x0 >= 0 && Math.floor(x1) === first) {
        // All of it lies in one pixel. What takes no time at all still leaves a mark.
        const share = dur[i] === 0 ? TICK : (busy ? busy[i] : dur[i]) * per;
        cover[first] += share;
        red[first] += r * share;
        green[first] += g * share;
        blue[first] += b * share;
        continue;
      }
      const density = busy && dur[i] > 0 ? Math.min(1, busy[i] / dur[i]) : 1;
      const alone = !level.items || level.items[i] === 1;
      if (x0 < 0) x0 = 0;
      else if (alone && x1 - x0 > EDGE_PIXELS) edge[first] = 1;
      if (x1 > width) x1 = width;
      const last = Math.floor(x1);
      if (alone && x1 - x0 > wide) labels.push(x0, x1 - x0, row.y, row.height, code, level.items ? -1 : row.first + i);
      let share = (Math.min(first + 1, x1) - x0) * density;
      for (let x = first; x <= last && x < width; x += 1) {
        if (x > first) share = x === last ? (x1 - last) * density : density;
        cover[x] += share;
        red[x] += r * share;
        green[x] += g * share;
        blue[x] += b * share;
      }
    }
  }

  /**
   * @param {Target} target
   * @param {Row} row
   * @param {number} background
   * @param {number} scale
   */
  write(target, row, background, scale) {
    const { pixels, width, height } = target;
    const top = Math.max(row.y, 0);
    const bottom = Math.min(row.y + row.height, height);
    const base = top * width;
    const back = [background & 255, (background >> 8) & 255, (background >> 16) & 255];
    const { cover, red, green, blue, edge } = this;
    for (let x = 0; x < width; x += 1) {
      const share = cover[x];
      if (share <= 0) continue;
      // Where lanes overlap, or rounding adds up to more than all of a pixel, colours are averaged.
      const part = share > 1 ? 1 / share : 1;
      const rest = (share > 1 ? 0 : 1 - share) + (edge[x] ? 0.45 : 0);
      const keep = edge[x] ? 0.55 : 1;
      pixels[base + x] = 0xff000000
        | (Math.min(255, blue[x] * part * keep + back[2] * rest) << 16)
        | (Math.min(255, green[x] * part * keep + back[1] * rest) << 8)
        | Math.min(255, red[x] * part * keep + back[0] * rest);
    }
    for (let y = top + 1; y < bottom; y += 1) pixels.copyWithin(y * width, base, base + width);
    if (row.height >= ROOM_PIXELS * scale) this.foot(target, row, Math.max(FOOT_PIXELS * scale, row.height * FOOT));
  }

  /**
   * The colour of what ran, at the foot of the pixels that show little of it.
   * @param {Target} target
   * @param {Row} row
   * @param {number} high device pixels
   */
  foot({ pixels, width, height }, row, high) {
    const bottom = Math.min(row.y + row.height, height);
    const top = Math.max(row.y + row.height - Math.round(high), 0);
    const { cover, red, green, blue } = this;
    for (let x = 0; x < width; x += 1) {
      const share = cover[x];
      if (share <= 0 || share >= FAINT) continue;
      const full = 0xff000000 | Math.round(blue[x] / share) << 16 | Math.round(green[x] / share) << 8
        | Math.round(red[x] / share);
      for (let y = top; y < bottom; y += 1) pixels[y * width + x] = full;
    }
  }
}
