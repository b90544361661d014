/** Choices among slices that the engine makes for the page. */
import { sumTrack } from './aggregate.js';
import { lowerBound } from './lod.js';
import { brief } from './navigate.js';

/** @typedef {import('./navigate.js').Brief} Brief */
/** @typedef {{start: number, dur: number|null, name: string|null, track: string|null, source?: number|null}} Wanted */

const NAMES_TOLD = 200;

/**
 * Count and time of slices by run.
 * @param {import('./model.js').Model} model
 * @param {Int32Array} slices rising
 */
export function sumByRun(model, slices) {
  return model.sources.map(({ label, firstSlice, slices: size }) => {
    const part = slices.subarray(lowerBound(slices, firstSlice), lowerBound(slices, firstSlice + size));
    return { label, count: part.length, total: part.reduce((sum, i) => sum + model.dur[i], 0) };
  });
}

/**
 * Count and time of slices by run and name, most time first.
 * @param {import('./model.js').Model} model
 * @param {Int32Array} slices
 */
export function sumByName(model, slices) {
  /** @type {Map<string, {run: string, name: string, kind: string, count: number, total: number}>} */
  const sums = new Map();
  const { sources } = model;
  for (const i of slices) {
    const name = model.name[i];
    const run = sources.length > 1 ? sources.findLastIndex(({ firstSlice }) => firstSlice <= i) : 0;
    const key = `${run} ${name}`;
    const sum = sums.get(key) ?? { run: sources[run].label, name: model.texts[name],
      kind: model.kindNames[model.kinds[name]], count: 0, total: 0 };
    sum.count += 1;
    sum.total += model.dur[i];
    sums.set(key, sum);
  }
  return [...sums.values()].sort((a, b) => b.total - a.total).slice(0, NAMES_TOLD);
}

/**
 * The time inside a slice by name of what it holds directly below and further in.
 * @param {import('./model.js').Model} model
 * @param {number} slice
 */
export function sumWithin(model, slice) {
  const about = brief(model, slice);
  const sum = sumTrack(model, about.track, about.start, about.start + about.dur);
  return sum.names.filter((one) => one.self > 0).slice(0, 12);
}

/**
 * @param {Int32Array} inOrder
 * @param {number} slice
 * @param {number} way
 */
export function neighbour(inOrder, slice, way) {
  const at = inOrder.indexOf(slice) + way;
  return at >= 0 && at < inOrder.length ? inOrder[at] : -1;
}

/**
 * @param {Int32Array} rising
 * @param {number} slice
 * @param {number} way
 */
export function stepped(rising, slice, way) {
  const at = lowerBound(rising, slice);
  if (way < 0) return rising[at > 0 ? at - 1 : rising.length - 1];
  return rising[at < rising.length && rising[at] === slice ? (at + 1) % rising.length : at % rising.length];
}

/**
 * @param {import('./model.js').Track} track
 * @param {Wanted} wanted
 */
function isOn({ label, id, source }, wanted) {
  return (wanted.track === null || label === wanted.track || id === wanted.track)
    && source === (wanted.source ?? source);
}

/**
 * @param {import('./model.js').Model} model
 * @param {import('./model.js').Lane} lane
 * @param {Wanted} wanted
 * @returns {number} -1 for none
 */
function sliceOf({ start, dur, texts, name }, { first, count }, wanted) {
  const end = first + count;
  for (let i = lowerBound(start, wanted.start, first, end); i < end && start[i] === wanted.start; i += 1) {
    if (wanted.dur !== null && dur[i] !== wanted.dur) continue;
    if (wanted.name === null || texts[name[i]] === wanted.name) return i;
  }
  return -1;
}

/**
 * The slice that starts at a time (and lasts so long, and has that name and track, where told); null for none.
 * @param {import('./model.js').Model} model
 * @param {Wanted} wanted
 * @returns {Brief|null}
 */
export function locate(model, wanted) {
  for (const lane of model.lanes) {
    const slice = isOn(model.tracks[lane.track], wanted) ? sliceOf(model, lane, wanted) : -1;
    if (slice >= 0) return brief(model, slice);
  }
  if (wanted.name === null && wanted.track === null) return null;
  return locate(model, { ...wanted, name: null, track: wanted.name === null ? null : wanted.track });
}
