/**
 * The query language of the viewer: a search, `group by` fields and `pivot` a field; of each group the count, total,
 * mean and longest. It is all that a saved report can be asked without a server.
 */
import { findSlices, parseQuery, unheard } from './query.js';
import { stepAt } from './steps.js';

/** @typedef {import('./model.js').Model} Model */
/** @typedef {import('./model.js').Track} Track */
/** @typedef {{search: string, by: string[], pivot: string|null, error: string|null}} Asked */
/** @typedef {string|number|null} Cell */
/** @typedef {{columns: {name: string, unit: 'ns'|'count'|null}[], rows: Cell[][], error: string|null,
 *   total?: number}} Answer `total`: how many rows there are, where not all are here */

/** @type {Record<string, (model: Model, slice: number, track: Track) => Cell>} */
const KEYS = {
  name: (model, slice) => model.texts[model.name[slice]],
  kind: (model, slice) => model.kindNames[model.kinds[model.name[slice]]],
  cat: (model, slice) => model.categoryList[model.categories[model.name[slice]]]?.name ?? null,
  dtype: (model, slice) => model.precisions[model.name[slice]],
  track: (model, _slice, track) => `${track.group} ${track.label}`,
  device: (_model, _slice, track) => track.device,
  rank: (model, _slice, track) => model.sources[track.source].header.rank ?? null,
  run: (model, _slice, track) => model.sources[track.source].label,
  step: (model, slice, track) => {
    const step = stepAt(model, track, model.start[slice]);
    return Number.isNaN(step) ? null : step;
  },
};
export const GROUPS = Object.keys(KEYS);
const ASKED = /^(?<search>.*?)(?:\s*\bgroup\s+by\s+(?<by>[\w\s,]+?))?(?:\s+pivot\s+(?<pivot>\w+))?\s*$/is;
/** Columns that a pivot may have: of more values those that take most. */
const MOST_PIVOTED = 12;

/**
 * @param {string} text
 * @returns {Asked}
 */
export function parseAsked(text) {
  const { search = '', by = '', pivot } = ASKED.exec(text)?.groups ?? {};
  const fields = (by || 'name').toLowerCase().split(/[\s,]+/).filter(Boolean);
  const unknown = [...fields, ...(pivot ? [pivot.toLowerCase()] : [])].find((field) => !KEYS[field]);
  const error = unknown ? `${unknown} is nothing to group by; there are ${GROUPS.join(', ')}` : null;
  return { search: search.trim(), by: fields, pivot: pivot?.toLowerCase() ?? null, error };
}

/**
 * @param {Model} model
 * @param {string} text
 * @returns {Answer}
 */
export function grouped(model, text) {
  const { search, by, pivot, error: wrong } = parseAsked(text);
  const query = parseQuery(search);
  const error = wrong ?? query.error ?? unheard(model, query);
  if (error) return { columns: [], rows: [], error };
  /** @type {Map<string, {keys: Cell[], count: number, total: number, max: number, parts: Map<Cell, number>}>} */
  const groups = new Map();
  /** @type {Map<Cell, number>} */
  const pivots = new Map();
  let lane = 0;
  for (const slice of findSlices(model, query)) {
    while (slice >= model.lanes[lane].first + model.lanes[lane].count) lane += 1;
    const track = model.tracks[model.lanes[lane].track];
    const keys = by.map((field) => KEYS[field](model, slice, track));
    const key = JSON.stringify(keys);
    const one = groups.get(key) ?? { keys, count: 0, total: 0, max: 0, parts: new Map() };
    const dur = model.dur[slice];
    one.count += 1;
    one.total += dur;
    one.max = Math.max(one.max, dur);
    groups.set(key, one);
    if (!pivot) continue;
    const value = KEYS[pivot](model, slice, track);
    one.parts.set(value, (one.parts.get(value) ?? 0) + dur);
    pivots.set(value, (pivots.get(value) ?? 0) + dur);
  }
  const across = [...pivots].sort((a, b) => b[1] - a[1]).slice(0, MOST_PIVOTED).map(([value]) => value);
  return {
    columns: [...by.map((name) => ({ name, unit: null })), { name: 'count', unit: 'count' },
      { name: 'total_ns', unit: 'ns' }, { name: 'mean_ns', unit: 'ns' }, { name: 'max_ns', unit: 'ns' },
      ...across.map((value) => ({ name: `${pivot} ${value ?? 'not recorded'}`, unit: /** @type {'ns'} */ ('ns') }))],
    rows: [...groups.values()].sort((a, b) => b.total - a.total).map(({ keys, count, total, max, parts }) => (
      [...keys, count, total, Math.round(total / count), max, ...across.map((value) => parts.get(value) ?? 0)])),
    error: null,
  };
}
