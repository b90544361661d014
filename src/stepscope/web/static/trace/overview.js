/** Where the work of the whole trace is: the strip over it, per device (the first thread, where there is none) the busy
 * share of each pixel, and the stretch that holds nearly all of it. */
import { levelFor } from './lod.js';

const STRIPS = 8;
/** What may lie outside of the stretch that holds nearly all, at each end: of slices, and of their time. */
const OUTSIDE = 0.02;
const BINS = 2048;

/**
 * @param {import('./model.js').Model} model
 * @param {(lane: number) => import('./lod.js').Level[]} levels
 * @param {number} width
 * @returns {{label: string, source: number, share: Float32Array}[]}
 */
export function overview(model, levels, width) {
  const devices = new Map();
  for (const track of model.tracks.filter((one) => one.type === 'stream')) {
    const key = `${track.source} ${track.device}`;
    devices.set(key, [...(devices.get(key) ?? []), track]);
  }
  const threads = model.tracks.filter((one) => one.type === 'thread').slice(0, 1);
  const groups = devices.size ? [...devices.values()] : [threads];
  return groups.slice(0, STRIPS).map((tracks) => {
    const share = new Float32Array(width);
    for (const track of tracks) {
      for (let lane = track.firstLane; lane < track.firstLane + track.laneCount; lane += 1) {
        addShare(share, levels(lane), model.begin, model.end);
      }
    }
    for (let x = 0; x < width; x += 1) share[x] = Math.min(1, share[x]);
    return { label: tracks[0]?.group ?? '', source: tracks[0]?.source ?? 0, share };
  });
}

/**
 * @param {Float32Array} share
 * @param {import('./lod.js').Level[]} levels
 * @param {number} begin
 * @param {number} end
 */
function addShare(share, levels, begin, end) {
  const perPixel = (end - begin) / share.length;
  const { start, dur, busy, count } = levelFor(levels, perPixel);
  for (let i = 0; i < count; i += 1) {
    const x0 = (start[i] - begin) / perPixel;
    const x1 = x0 + dur[i] / perPixel;
    const density = busy && dur[i] > 0 ? busy[i] / dur[i] : 1;
    for (let x = Math.max(0, Math.floor(x0)); x < share.length && x < x1; x += 1) {
      share[x] += (Math.min(x + 1, x1) - Math.max(x, x0)) * density;
    }
  }
}

/**
 * The stretch of time that holds nearly all slices of devices (of threads, where there is none) and nearly all of their
 * time; null where there is nothing.
 * @param {import('./model.js').Model} model
 * @returns {{begin: number, end: number}|null}
 */
export function active(model) {
  const streams = model.tracks.filter((one) => one.type === 'stream' && one.laneCount);
  const tracks = streams.length ? streams : model.tracks.filter((one) => one.type === 'thread');
  const lanes = tracks.flatMap((track) => model.lanes.slice(track.firstLane, track.firstLane + 1));
  const [count, time] = [new Float64Array(BINS), new Float64Array(BINS)];
  let { begin, end } = model;
  // Each look is as fine as the stretch that the one before found.
  for (let look = 0; look < 3; look += 1) {
    const per = BINS / (end - begin);
    count.fill(0);
    time.fill(0);
    for (const { first, count: size } of lanes) {
      for (let i = first; i < first + size; i += 1) {
        const at = Math.floor((model.start[i] - begin) * per);
        if (at < 0 || at >= BINS) continue;
        count[at] += 1;
        time[Math.min(BINS - 1, Math.floor((model.start[i] + model.dur[i] - begin) * per))] += model.dur[i] / 2;
        time[at] += model.dur[i] / 2;
      }
    }
    const spans = [within(count), within(time)];
    if (!spans[0]) return null;
    const low = Math.min(...spans.map((one) => one?.[0] ?? BINS));
    const high = Math.max(...spans.map((one) => one?.[1] ?? 0));
    const range = { begin: begin + low / per, end: begin + high / per };
    const isFine = high - low > BINS / 8;
    ({ begin, end } = range);
    if (isFine) break;
  }
  return { begin, end };
}

/**
 * The first bin and the one after the last that leave no more than a little outside; null where all are empty.
 * @param {Float64Array} bins
 * @returns {[number, number]|null}
 */
function within(bins) {
  const total = bins.reduce((sum, one) => sum + one, 0);
  if (!total) return null;
  let [low, high] = [0, bins.length];
  for (let left = bins[low]; left <= total * OUTSIDE; left += bins[low]) low += 1;
  for (let left = bins[high - 1]; left <= total * OUTSIDE; left += bins[high - 1]) high -= 1;
  return [low, high];
}
