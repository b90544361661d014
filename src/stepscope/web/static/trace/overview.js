/** The strip over the whole trace: per device (the first thread, where there is none) the busy share of each pixel. */
import { levelFor } from './lod.js';

const STRIPS = 8;

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
