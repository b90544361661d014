/** Slices that queries found, as tracks behind those that were recorded. */
import { visible } from '../core/text.js';
import { formatCount } from '../core/units.js';
import { viewTime } from './clock.js';
import { parseAsked } from './groups.js';
import { findSlices, parseQuery, unheard } from './query.js';

/** @typedef {import('./model.js').Model} Model */
/** @typedef {[number, number, string]} Row start, duration and name, as the profile of the first source has them */
/** @typedef {{text: string, label: string, rows: Row[]|null}} Wanted `rows`: what SQL found; null for what the search
 *   of `text` finds */
/** @typedef {{start: number, dur: number, name: number}} Slice in the time of the view */

/** The kind of such slices, and the type of their tracks. */
export const FOUND = 'found';
/** The group of what queries made. */
export const QUERIES = 'queries';
/** So many slices of a view can be such: the columns have room for them from the beginning. */
export const ROOM = 16_384;
/** More slices at one time are not drawn. */
const MOST_LANES = 24;

/**
 * Put tracks in the place of those that queries made before.
 * @param {Model} model
 * @param {Wanted[]} wanted
 * @returns {(string|null)[]} of each what is wrong with its search
 */
export function putFound(model, wanted) {
  const { recorded } = model;
  for (const list of /** @type {const} */ (['tracks', 'lanes', 'texts', 'precisions'])) {
    model[list].length = recorded[list];
  }
  const names = new FoundNames(model);
  let next = recorded.slices;
  const errors = wanted.map((one) => {
    const { error, slices } = one.rows ? given(model, names, one.rows) : searched(model, names, one.text);
    for (const [source, all] of slices) next = add(model, { ...one, source }, all, next);
    return error;
  });
  names.put();
  return errors;
}

/** The names of what was found: with the category, and so the colour, of what is called so. */
class FoundNames {
  /** @param {Model} model */
  constructor(model) {
    this.model = model;
    this.kind = model.kindNames.indexOf(FOUND);
    /** @type {Map<string, number>} */
    this.known = new Map();
    /** @type {Map<string, number>|null} */
    this.recorded = null;
    this.categories = [...model.categories.subarray(0, model.recorded.texts)];
    this.kinds = [...model.kinds.subarray(0, model.recorded.texts)];
  }

  /** The name of a slice that is recorded. @param {number} name */
  as(name) {
    return this.number(this.model.texts[name], this.categories[name]);
  }

  /** @param {string} text */
  of(text) {
    const { texts } = this.model;
    this.recorded ??= new Map(texts.map((one, at) => [one, at]));
    const like = this.recorded.get(text);
    return this.number(text, like === undefined ? 255 : this.categories[like]);
  }

  /**
   * @param {string} text
   * @param {number} category
   */
  number(text, category) {
    const key = `${category} ${text}`;
    const code = this.known.get(key) ?? this.categories.length;
    if (code === this.categories.length) {
      this.known.set(key, code);
      this.model.texts.push(text);
      this.model.precisions.push(null);
      this.categories.push(category);
      this.kinds.push(this.kind);
    }
    return code;
  }

  put() {
    this.model.categories = Uint8Array.from(this.categories);
    this.model.kinds = Uint8Array.from(this.kinds);
  }
}

/** @typedef {{error: string|null, slices: Map<number, Slice[]>}} Answer slices by source */

/**
 * @param {Model} model
 * @param {FoundNames} names
 * @param {Row[]} rows
 * @returns {Answer}
 */
function given(model, names, rows) {
  const [source] = model.sources;
  const slices = rows.map(([start, dur, name]) => {
    const begin = viewTime(source, start);
    return { start: begin, dur: viewTime(source, start + dur) - begin, name: names.of(visible(name)) };
  });
  return { error: null, slices: new Map([[0, slices]]) };
}

/**
 * @param {Model} model
 * @param {FoundNames} names
 * @param {string} text
 * @returns {Answer}
 */
function searched(model, names, text) {
  const query = parseQuery(parseAsked(text).search);
  const error = query.error ?? unheard(model, query);
  /** @type {Map<number, Slice[]>} */
  const slices = new Map();
  let lane = 0;
  for (const i of error ? [] : findSlices(model, query)) {
    while (i >= model.lanes[lane].first + model.lanes[lane].count) lane += 1;
    const { source } = model.tracks[model.lanes[lane].track];
    const all = slices.get(source) ?? [];
    // More than there is room for is only counted.
    all.push({ start: model.start[i], dur: model.dur[i], name: all.length < ROOM ? names.as(model.name[i]) : 0 });
    slices.set(source, all);
  }
  return { error, slices };
}

/**
 * Add a track: of what overlaps, each lane has what fits behind what it holds.
 * @param {Model} model
 * @param {Wanted & {source: number}} about
 * @param {Slice[]} all
 * @param {number} first
 * @returns {number} where the next track may begin
 */
function add(model, { text, label, source }, all, first) {
  const { tracks, lanes, recorded } = model;
  const room = recorded.slices + ROOM - first;
  const { held, left } = laidOut(all.slice(0, room));
  const missing = left + Math.max(0, all.length - room);
  const told = `${formatCount(all.length - missing)} of ${formatCount(all.length)}`;
  tracks.push({ number: tracks.length, id: text, type: FOUND, group: QUERIES, device: null, source,
    label: visible(missing ? `${label} (${told})` : label),
    holds: null, firstLane: lanes.length, laneCount: held.length });
  let next = first;
  for (const lane of held) {
    lanes.push({ track: tracks.length - 1, first: next, count: lane.length });
    for (const { start, dur, name } of lane) {
      if (dur >= 2 ** 32 && model.dur instanceof Uint32Array) model.dur = Float64Array.from(model.dur);
      [model.start[next], model.dur[next], model.name[next]] = [start, dur, name];
      next += 1;
    }
  }
  return next;
}

/**
 * @param {Slice[]} slices
 * @returns {{held: Slice[][], left: number}} `left` found no lane
 */
function laidOut(slices) {
  /** @type {Slice[][]} */
  const held = [];
  let left = 0;
  for (const slice of [...slices].sort((a, b) => a.start - b.start || b.dur - a.dur)) {
    const lane = held.find((one) => one[one.length - 1].start + one[one.length - 1].dur <= slice.start);
    if (lane) lane.push(slice);
    else if (held.length < MOST_LANES) held.push([slice]);
    else left += 1;
  }
  return { held, left };
}
