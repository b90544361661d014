/** Sums over a range of time: per track and name, and what each device's time was booked to. */
import { firstAfter } from './lod.js';

/** @typedef {import('./model.js').Model} Model */
/** @typedef {{name: string, kind: string, count: number, total: number, self: number, p50: number, p99: number,
 *   max: number}} NameSum */
/** @typedef {{track: number, count: number, busy: number, names: NameSum[]}} TrackSum */

const NAMES_SHOWN = 300;

/**
 * The slices of a track that overlap a range, in order of start and falling duration.
 * @param {Model} model
 * @param {import('./model.js').Track} track
 * @param {number} begin
 * @param {number} end
 * @returns {Int32Array}
 */
export function overlapping(model, track, begin, end) {
  /** @type {number[][]} */
  const parts = [];
  for (let at = track.firstLane; at < track.firstLane + track.laneCount; at += 1) {
    const { first, count } = model.lanes[at];
    const level = { count, start: model.start.subarray(first, first + count),
      dur: model.dur.subarray(first, first + count) };
    const part = [];
    const from = firstAfter(level, begin);
    for (let i = from; i < count && level.start[i] < end; i += 1) part.push(first + i);
    parts.push(part);
  }
  const all = Int32Array.from(parts.flat());
  if (parts.length < 2) return all;
  return all.sort((a, b) => model.start[a] - model.start[b] || model.dur[b] - model.dur[a] || a - b);
}

/**
 * Per slice, the time in the range in which it is its track's innermost (as `stepscope.trace.self_time`).
 * @param {Model} model
 * @param {Int32Array} slices in order of start and falling duration
 * @param {number} begin
 * @param {number} end
 * @returns {Float64Array}
 */
export function selfTimes(model, slices, begin, end) {
  const own = new Float64Array(slices.length);
  /** @type {number[]} */
  const stack = [];
  let now = begin;
  for (let i = 0; i <= slices.length; i += 1) {
    const until = i < slices.length ? Math.min(Math.max(model.start[slices[i]], begin), end) : end;
    while (stack.length) {
      const top = stack[stack.length - 1];
      const stop = model.start[slices[top]] + model.dur[slices[top]];
      const over = Math.min(stop, until);
      if (over > now) {
        own[top] += over - now;
        now = over;
      }
      if (stop > until) break;
      stack.pop();
    }
    if (i === slices.length) break;
    now = Math.min(Math.max(model.start[slices[i]], now), end);
    stack.push(i);
  }
  return own;
}

/**
 * @param {Model} model
 * @param {number} trackNumber
 * @param {number} begin
 * @param {number} end
 * @param {number} [most] names, those with most time of their own
 * @returns {TrackSum}
 */
export function sumTrack(model, trackNumber, begin, end, most = NAMES_SHOWN) {
  const slices = overlapping(model, model.tracks[trackNumber], begin, end);
  const own = selfTimes(model, slices, begin, end);
  /** @type {Map<number, {count: number, total: number, self: number, durations: number[]}>} */
  const sums = new Map();
  let busy = 0;
  for (let k = 0; k < slices.length; k += 1) {
    const i = slices[k];
    let sum = sums.get(model.name[i]);
    if (!sum) sums.set(model.name[i], sum = { count: 0, total: 0, self: 0, durations: [] });
    sum.count += 1;
    sum.total += Math.min(model.start[i] + model.dur[i], end) - Math.max(model.start[i], begin);
    sum.self += own[k];
    sum.durations.push(model.dur[i]);
    busy += own[k];
  }
  const names = [...sums].map(([name, { durations, ...sum }]) => {
    const sorted = Float64Array.from(durations).sort();
    const at = (/** @type {number} */ share) => sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)];
    return { name: model.texts[name], kind: model.kindNames[model.kinds[name]], ...sum, p50: at(0.5), p99: at(0.99),
      max: sorted[sorted.length - 1] };
  });
  names.sort((a, b) => b.self - a.self || b.total - a.total);
  return { track: trackNumber, count: slices.length, busy, names: names.slice(0, most) };
}

/**
 * What a device's time in a range was booked to: busy time to the first category of the list that was at work, idle
 * time to its causes. With what lies outside the device's time the parts sum to the range.
 * @param {Model} model
 * @param {number} source
 * @param {number} device
 * @param {number} begin
 * @param {number} end
 * @returns {{category: string, label: string, busy: boolean, ns: number}[]}
 */
export function deviceParts(model, source, device, begin, end) {
  const mine = model.tracks.filter((track) => track.source === source && track.device === device);
  const sums = new Float64Array(model.categoryList.length);
  addBusy(model, mine.filter((track) => track.type === 'stream'), begin, end, sums);
  for (const track of mine.filter((one) => one.type === 'idle')) {
    const slices = overlapping(model, track, begin, end);
    const own = selfTimes(model, slices, begin, end);
    slices.forEach((i, k) => { sums[model.categories[model.name[i]]] += own[k]; });
  }
  return model.categoryList.map(({ name, label, busy }, at) => ({ category: name, label, busy, ns: sums[at] }))
    .filter((part) => part.ns > 0)
    .sort((a, b) => b.ns - a.ns);
}

/**
 * @param {Model} model
 * @param {import('./model.js').Track[]} streams
 * @param {number} begin
 * @param {number} end
 * @param {Float64Array} sums per category
 */
function addBusy(model, streams, begin, end, sums) {
  /** @type {number[]} */
  const times = [];
  /** @type {number[]} */
  const changes = [];
  for (const track of streams) {
    for (const i of overlapping(model, track, begin, end)) {
      const category = model.categories[model.name[i]];
      if (!model.categoryList[category]?.busy) continue;
      times.push(Math.max(model.start[i], begin), Math.min(model.start[i] + model.dur[i], end));
      changes.push(category + 1, -category - 1);
    }
  }
  const order = Int32Array.from(times.keys()).sort((a, b) => times[a] - times[b]);
  const active = new Int32Array(sums.length);
  let now = begin;
  for (const at of order) {
    const winner = active.findIndex((count) => count > 0);
    if (winner >= 0) sums[winner] += times[at] - now;
    now = times[at];
    active[Math.abs(changes[at]) - 1] += Math.sign(changes[at]);
  }
}
