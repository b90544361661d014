/** From a slice to its neighbours: on its track, around it, along flows, of the same name. */
import { lowerBound } from './lod.js';

/** @typedef {import('./model.js').Model} Model */
/** @typedef {{slice: number, name: string, kind: string, category: string|null, start: number, dur: number,
 *   track: number, lane: number, depth: number, id: number, source: number}} Brief what is shown of a slice */

/**
 * @param {Model} model
 * @param {number} slice
 * @returns {number}
 */
export function laneOf(model, slice) {
  const { lanes } = model;
  let [from, to] = [0, lanes.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    if (lanes[middle].first + lanes[middle].count <= slice) from = middle + 1;
    else to = middle;
  }
  return from;
}

/**
 * @param {Model} model
 * @param {number} slice
 * @returns {Brief}
 */
export function brief(model, slice) {
  const lane = laneOf(model, slice);
  const track = model.tracks[model.lanes[lane].track];
  const name = model.name[slice];
  return {
    slice, name: model.texts[name], kind: model.kindNames[model.kinds[name]],
    category: model.categoryList[model.categories[name]]?.label ?? null,
    start: model.start[slice], dur: model.dur[slice], track: track.number, lane, depth: lane - track.firstLane,
    id: model.id[slice], source: track.source,
  };
}

/**
 * The slice of a lane at a time, or the nearest within `slop`; -1 for none.
 * @param {Model} model
 * @param {number} laneNumber
 * @param {number} time
 * @param {number} slop
 * @returns {number}
 */
export function sliceAt(model, laneNumber, time, slop) {
  const lane = model.lanes[laneNumber];
  const end = lane.first + lane.count;
  const after = lowerBound(model.start, time, lane.first, end);
  const from = lowerBound(model.start, time - slop, lane.first, end) - 1;
  let best = -1;
  let distance = slop;
  for (let i = Math.max(from, after - 8, lane.first); i < Math.min(after + 8, end); i += 1) {
    const away = Math.max(model.start[i] - time, time - (model.start[i] + model.dur[i]), 0);
    if (away < distance || (away === distance && best < 0)) {
      best = i;
      distance = away;
    }
  }
  return best;
}

/**
 * The same of several lanes: of those that are as near the shortest.
 * @param {Model} model
 * @param {number[]} lanes
 * @param {number} time
 * @param {number} slop
 */
export function sliceAtOf(model, lanes, time, slop) {
  const away = (/** @type {number} */ i) => (
    Math.max(model.start[i] - time, time - (model.start[i] + model.dur[i]), 0));
  const slices = lanes.map((lane) => sliceAt(model, lane, time, slop)).filter((slice) => slice >= 0);
  return slices.sort((a, b) => away(a) - away(b) || model.dur[a] - model.dur[b])[0] ?? -1;
}

/**
 * What encloses a slice on its track, innermost first.
 * @param {Model} model
 * @param {number} slice
 * @returns {number[]}
 */
export function enclosing(model, slice) {
  const lane = laneOf(model, slice);
  const track = model.tracks[model.lanes[lane].track];
  const [start, end] = [model.start[slice], model.start[slice] + model.dur[slice]];
  const around = [];
  for (let at = lane - 1; at >= track.firstLane; at -= 1) {
    const { first, count } = model.lanes[at];
    const i = lowerBound(model.start, start + 0.5, first, first + count) - 1;
    if (i >= first && model.start[i] <= start && model.start[i] + model.dur[i] >= end) around.push(i);
  }
  return around;
}

/**
 * The next (1) or previous (-1) slice of the same lane, or, as what overlaps on a stream is equal, of the same stream;
 * -1 for none.
 * @param {Model} model
 * @param {number} slice
 * @param {number} way
 * @returns {number}
 */
export function beside(model, slice, way) {
  const own = model.lanes[laneOf(model, slice)];
  const track = model.tracks[own.track];
  const lanes = track.type === 'stream' ? model.lanes.slice(track.firstLane, track.firstLane + track.laneCount) : [own];
  let best = -1;
  for (const lane of lanes) {
    const i = way > 0 ? nextIn(model, lane, slice) : previousIn(model, lane, slice);
    if (i >= 0 && (best < 0 || (way > 0 ? isAfter(model, best, i) : isAfter(model, i, best)))) best = i;
  }
  return best;
}

/**
 * Slices are in order of start, and of place where they start together.
 * @param {Model} model
 * @param {number} i
 * @param {number} other
 */
function isAfter({ start }, i, other) {
  return start[i] > start[other] || (start[i] === start[other] && i > other);
}

/**
 * The first of a lane that is after a slice; -1 for none.
 * @param {Model} model
 * @param {import('./model.js').Lane} lane
 * @param {number} slice
 */
function nextIn(model, { first, count }, slice) {
  const end = first + count;
  let i = lowerBound(model.start, model.start[slice], first, end);
  while (i < end && !isAfter(model, i, slice)) i += 1;
  return i < end ? i : -1;
}

/**
 * The last of a lane that is before a slice; -1 for none.
 * @param {Model} model
 * @param {import('./model.js').Lane} lane
 * @param {number} slice
 */
function previousIn(model, { first, count }, slice) {
  const end = first + count;
  let i = lowerBound(model.start, model.start[slice], first, end);
  while (i < end && isAfter(model, slice, i)) i += 1;
  return i > first ? i - 1 : -1;
}

/**
 * One level further out (-1) or in (1); -1 for none.
 * @param {Model} model
 * @param {number} slice
 * @param {number} way
 * @returns {number}
 */
export function across(model, slice, way) {
  if (way < 0) return enclosing(model, slice)[0] ?? -1;
  const lane = laneOf(model, slice);
  const track = model.tracks[model.lanes[lane].track];
  const end = model.start[slice] + model.dur[slice];
  for (let at = lane + 1; at < track.firstLane + track.laneCount; at += 1) {
    const { first, count } = model.lanes[at];
    const i = lowerBound(model.start, model.start[slice], first, first + count);
    if (i < first + count && model.start[i] + model.dur[i] <= end) return i;
  }
  return -1;
}

/**
 * Flows into and out of a slice. Of a collective on several ranks it is into those of ranks before and out of those
 * behind, so that one walks from rank to rank.
 * @param {Model} model
 * @param {number} slice
 * @returns {{into: {slice: number, kind: string}[], out: {slice: number, kind: string}[]}}
 */
export function flowsOf(model, slice) {
  const { flowSource, flowTarget, flowKind, byTarget, flowKinds } = model;
  const out = [];
  for (let i = lowerBound(flowSource, slice); i < flowSource.length && flowSource[i] === slice; i += 1) {
    out.push({ slice: flowTarget[i], kind: flowKinds[flowKind[i]] });
  }
  let [from, to] = [0, byTarget.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    if (flowTarget[byTarget[middle]] < slice) from = middle + 1;
    else to = middle;
  }
  const into = [];
  for (; from < byTarget.length && flowTarget[byTarget[from]] === slice; from += 1) {
    into.push({ slice: flowSource[byTarget[from]], kind: flowKinds[flowKind[byTarget[from]]] });
  }
  const { peers } = model;
  for (const peer of peers.get(slice) ?? []) {
    if (peer > slice) out.push({ slice: peer, kind: 'collective' });
    else if (peer < slice) into.unshift({ slice: peer, kind: 'collective' });
  }
  return { into, out };
}

/**
 * Every slice of a name and kind in a run, in order of time.
 * @param {Model} model
 * @param {number} name
 * @param {{firstSlice: number, slices: number}} run
 * @returns {Int32Array}
 */
export function occurrences(model, name, { firstSlice, slices }) {
  const end = firstSlice + slices;
  let count = 0;
  for (let i = firstSlice; i < end; i += 1) if (model.name[i] === name) count += 1;
  const rows = new Int32Array(count);
  let at = 0;
  for (let i = firstSlice; i < end; i += 1) {
    if (model.name[i] === name) {
      rows[at] = i;
      at += 1;
    }
  }
  return rows.sort((a, b) => model.start[a] - model.start[b] || a - b);
}

const BINS = 24;

/**
 * How the durations of some slices are spread: `bins[k]` last from `edges[k]` to less than `edges[k + 1]`.
 * @param {Model} model
 * @param {Int32Array} slices
 */
export function spread(model, slices) {
  const durations = Float64Array.from(slices, (i) => model.dur[i]).sort();
  const n = durations.length;
  let total = 0;
  for (const value of durations) total += value;
  const at = (/** @type {number} */ share) => durations[Math.min(n - 1, Math.max(0, Math.ceil(share * n) - 1))];
  const [low, high] = [durations[0], durations[n - 1]];
  const bins = new Array(BINS).fill(0);
  // Bins of equal ratio: durations of one op often differ by orders of magnitude.
  const edges = Array.from({ length: BINS + 1 }, (_, k) => (
    Math.min(high + 1, Math.ceil((low + 1) * ((high + 2) / (low + 1)) ** (k / BINS)) - 1)));
  let bin = 0;
  for (const value of durations) {
    while (value >= edges[bin + 1]) bin += 1;
    bins[bin] += 1;
  }
  return { count: n, total, min: low, p50: at(0.5), p99: at(0.99), max: high, bins, edges };
}
