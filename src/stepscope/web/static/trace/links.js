/** Collectives across ranks: which slice of one rank is which of another (src/stepscope/web/links.py says it). */
import { viewTime } from './clock.js';
import { lowerBound } from './lod.js';
import { Pack } from './pack.js';

/** @typedef {import('./model.js').Model} Model */

/**
 * The slices of each collective that several ranks in sight took part in, by each of them, in order of the ranks.
 * @param {Model} model
 * @param {import('./model.js').Links} links
 * @returns {Promise<Map<number, number[]>>}
 */
export async function readLinks(model, { pack: buffer, ranks }) {
  const pack = new Pack(buffer);
  /** @type {Map<number, number[]>} */
  const members = new Map();
  for (const [source, rank] of ranks.entries()) {
    if (!pack.has(`${rank}.start`)) continue;
    const [start, device, link] = await Promise.all(
      ['start', 'device', 'link'].map((column) => pack.ints(`${rank}.${column}`)));
    const lanes = lanesByDevice(model, source);
    for (let i = 0; i < start.length; i += 1) {
      const slice = collectiveAt(model, lanes.get(device[i]) ?? [], viewTime(model.sources[source], start[i]));
      if (slice < 0) continue;
      const known = members.get(link[i]);
      if (known) known.push(slice);
      else members.set(link[i], [slice]);
    }
  }
  const peers = new Map();
  for (const slices of members.values()) {
    if (slices.length > 1) for (const slice of slices) peers.set(slice, slices);
  }
  return peers;
}

/**
 * The lanes of each device of a source, of -1 those of its host.
 * @param {Model} model
 * @param {number} source
 * @returns {Map<number, import('./model.js').Lane[]>}
 */
function lanesByDevice({ tracks, lanes }, source) {
  const byDevice = new Map();
  for (const track of tracks) {
    if (track.source !== source || !['stream', 'group', 'thread', 'other'].includes(track.type)) continue;
    const device = track.device ?? -1;
    const own = lanes.slice(track.firstLane, track.firstLane + track.laneCount);
    byDevice.set(device, [...(byDevice.get(device) ?? []), ...own]);
  }
  return byDevice;
}

/**
 * The slice that starts at a time, one that is called a collective before others, the shortest of those; -1 for none.
 * @param {Model} model
 * @param {import('./model.js').Lane[]} lanes
 * @param {number} time
 */
function collectiveAt(model, lanes, time) {
  let [best, least] = [-1, Infinity];
  for (const { first, count } of lanes) {
    const slice = lowerBound(model.start, time, first, first + count);
    if (slice === first + count || model.start[slice] !== time) continue;
    const isCalledOne = model.kindNames[model.kinds[model.name[slice]]] === 'collective';
    const weight = model.dur[slice] + (isCalledOne ? 0 : Number.MAX_SAFE_INTEGER);
    if (weight >= least) continue;
    [best, least] = [slice, weight];
  }
  return best;
}
