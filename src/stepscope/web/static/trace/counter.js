/** Counters: what is drawn of their samples, at any level of detail, and on which scale. */
import { lowerBound } from './lod.js';

/** @typedef {'value'|'delta'|'rate'} Mode the value, its change since the sample before, or its change per second */
/** @typedef {{time: Float64Array, value: Float64Array, low: number, high: number, least: number,
 *   extremes: Extremes}} Series `low` is at most 0, `least` the smallest that is not 0 */

const FACTOR = 16;

/** The least and greatest of any stretch of samples, without looking at each of them. */
export class Extremes {
  /** @param {Float64Array} value */
  constructor(value) {
    /** @type {{low: Float64Array, high: Float64Array}[]} */
    this.levels = [{ low: value, high: value }];
    for (let below = this.levels[0]; below.low.length > FACTOR; [below] = this.levels.slice(-1)) {
      const size = Math.ceil(below.low.length / FACTOR);
      const [low, high] = [new Float64Array(size).fill(Infinity), new Float64Array(size).fill(-Infinity)];
      for (let i = 0; i < below.low.length; i += 1) {
        const at = Math.floor(i / FACTOR);
        if (below.low[i] < low[at]) low[at] = below.low[i];
        if (below.high[i] > high[at]) high[at] = below.high[i];
      }
      this.levels.push({ low, high });
    }
  }

  /**
   * @param {number} from
   * @param {number} to behind the last
   * @returns {[number, number]} least and greatest; Infinity and -Infinity where there is none
   */
  over(from, to) {
    let [begin, end, low, high] = [from, to, Infinity, -Infinity];
    for (const level of this.levels) {
      const take = (/** @type {number} */ i) => {
        if (level.low[i] < low) low = level.low[i];
        if (level.high[i] > high) high = level.high[i];
      };
      const isLast = level === this.levels[this.levels.length - 1];
      for (; begin < end && (isLast || begin % FACTOR); begin += 1) take(begin);
      for (; begin < end && end % FACTOR; end -= 1) take(end - 1);
      if (begin >= end) break;
      [begin, end] = [begin / FACTOR, end / FACTOR];
    }
    return [low, high];
  }
}

/**
 * @param {{time: Float64Array, value: Float64Array}} counter
 * @param {Mode} mode
 * @returns {Series}
 */
export function series({ time, value: plain }, mode) {
  const value = mode === 'value' ? plain : changes(time, plain, mode === 'rate');
  const extremes = new Extremes(value);
  const [low, high] = extremes.over(0, value.length);
  let least = Infinity;
  for (const one of value) if (one !== 0 && Math.abs(one) < least) least = Math.abs(one);
  return { time, value, low: Math.min(low, 0), high: Math.max(high, 0), least, extremes };
}

/**
 * The change from each sample to the next, at the next; of the first there is none.
 * @param {Float64Array} time ns
 * @param {Float64Array} value
 * @param {boolean} perSecond
 */
function changes(time, value, perSecond) {
  return value.map((one, i) => {
    const span = i > 0 ? time[i] - time[i - 1] : 0;
    const change = i > 0 ? one - value[i - 1] : NaN;
    return perSecond ? (span > 0 ? (change / span) * 1e9 : NaN) : change;
  });
}

/**
 * The scale that some counters share: what turns a value into its share of the height.
 * @param {Series[]} shared
 * @param {boolean} isLog
 * @returns {{low: number, high: number, scaled: (value: number) => number}}
 */
export function scaleOf(shared, isLog) {
  const low = Math.min(...shared.map((one) => one.low));
  const high = Math.max(...shared.map((one) => one.high));
  const least = Math.min(...shared.map((one) => one.least));
  // Logarithmic on both sides of 0: as high as the order of magnitude above the least that was counted.
  const along = isLog && Number.isFinite(least)
    ? (/** @type {number} */ value) => Math.sign(value) * Math.log1p(Math.abs(value) / least)
    : (/** @type {number} */ value) => value;
  const span = along(high) - along(low) || 1;
  return { low, high, scaled: (value) => (along(value) - along(low)) / span };
}

/**
 * A counter as an area: per pixel the last value, and a line from the least to the greatest, which no zoom hides.
 * @param {import('./raster.js').Target} target
 * @param {Series} counter
 * @param {{y: number, height: number}} row
 * @param {{line: number, area: number}} colours 0xff.. as in the pixels
 * @param {(value: number) => number} scaled from a value to its share of the height
 */
export function drawCounter(target, { time, value, extremes }, row, colours, scaled) {
  const { pixels, width, begin, end } = target;
  const perPixel = (end - begin) / width;
  const toY = (/** @type {number} */ v) => Math.round((1 - scaled(v)) * (row.height - 1));
  let at = lowerBound(time, begin);
  for (let x = 0; x < width; x += 1) {
    const next = lowerBound(time, begin + (x + 1) * perPixel, at);
    const before = at > 0 ? value[at - 1] : NaN;
    const last = next > 0 ? value[next - 1] : NaN;
    const [least, greatest] = extremes.over(at, next);
    at = next;
    if (Number.isNaN(last)) continue;
    // What was counted before holds until the first sample of the pixel.
    const low = before < least ? before : Math.min(least, last);
    const high = before > greatest ? before : Math.max(greatest, last);
    const [top, bottom, base] = [toY(high), toY(low), toY(last)];
    for (let y = Math.max(top, -row.y); y < row.height && row.y + y < target.height; y += 1) {
      const pixel = (row.y + y) * width + x;
      if (y <= bottom || y === base) pixels[pixel] = colours.line;
      else if (y > base) pixels[pixel] = colours.area;
    }
  }
}
