/** Gaps of devices: their cause, what the host was in meanwhile and what ended them. */
import { lowerBound } from './lod.js';
import { brief } from './navigate.js';

/** @typedef {import('./navigate.js').Brief} Brief */
/** @typedef {{about: Brief, parts: {cause: string, ns: number}[], during: Brief|null, call: Brief|null, op: Brief|null,
 *   step: number, crosses: boolean}} Gap */

const LISTED = 1_000;

/**
 * @param {import('./model.js').Model} model
 * @param {number} slice
 * @returns {Gap|null}
 */
export function gapOf(model, slice) {
  const row = lowerBound(model.gaps.at, slice);
  return row < model.gaps.at.length && model.gaps.at[row] === slice ? gapAt(model, row) : null;
}

/**
 * @param {import('./model.js').Model} model
 * @param {number} row
 * @returns {Gap}
 */
function gapAt(model, row) {
  const { gaps } = model;
  const told = (/** @type {number} */ slice) => (slice < 0 ? null : brief(model, slice));
  const about = brief(model, gaps.at[row]);
  return { about, parts: partsOf(model, about), during: told(gaps.during[row]), call: told(gaps.call[row]),
    op: told(gaps.op[row]), step: gaps.step[row], crosses: gaps.crosses[row] === 1 };
}

/**
 * The causes of a gap: the parts inside it, or its own where it has one.
 * @param {import('./model.js').Model} model
 * @param {Brief} about
 */
function partsOf(model, about) {
  const track = model.tracks[about.track];
  /** @type {Map<string, number>} */
  const sums = new Map();
  for (let at = about.lane + 1; at < track.firstLane + track.laneCount; at += 1) {
    const { first, count } = model.lanes[at];
    for (let i = lowerBound(model.start, about.start, first, first + count); i < first + count; i += 1) {
      if (model.start[i] >= about.start + about.dur) break;
      const cause = model.categoryList[model.categories[model.name[i]]].label;
      sums.set(cause, (sums.get(cause) ?? 0) + model.dur[i]);
    }
  }
  if (!sums.size) sums.set(about.category ?? about.name, about.dur);
  return [...sums].map(([cause, ns]) => ({ cause, ns })).sort((a, b) => b.ns - a.ns);
}

/**
 * The gaps of the device that a slice is on, else of the first that has some, longest first.
 * @param {import('./model.js').Model} model
 * @param {number} slice -1 for none
 * @returns {Int32Array}
 */
export function longestGaps(model, slice) {
  const idle = model.tracks.filter((track) => track.type === 'idle');
  const own = slice < 0 ? null : model.tracks[brief(model, slice).track];
  const track = idle.find((one) => one.device === own?.device && one.source === own?.source) ?? idle[0];
  if (!track) return new Int32Array(0);
  // A gap lies in the first lane, beside work that was not recorded, its causes in those below.
  const { first, count } = model.lanes[track.firstLane];
  const gaps = Int32Array.from({ length: count }, (_, at) => first + at)
    .filter((i) => model.kindNames[model.kinds[model.name[i]]] === 'idle');
  return gaps.sort((a, b) => model.dur[b] - model.dur[a] || a - b);
}

/**
 * The longest gaps of a range, with what all of them sum to by cause.
 * @param {import('./model.js').Model} model
 * @param {{begin: number, end: number, device: number|null}} range
 */
export function gapList(model, { begin, end, device }) {
  const { gaps } = model;
  const rows = [];
  let total = 0;
  for (let row = 0; row < gaps.at.length; row += 1) {
    const i = gaps.at[row];
    if (model.start[i] >= end || model.start[i] + model.dur[i] <= begin) continue;
    if (device !== null && model.tracks[brief(model, i).track].device !== device) continue;
    rows.push(row);
    total += model.dur[i];
  }
  rows.sort((a, b) => model.dur[gaps.at[b]] - model.dur[gaps.at[a]]);
  return { count: rows.length, total, listed: rows.slice(0, LISTED).map((row) => gapAt(model, row)) };
}
