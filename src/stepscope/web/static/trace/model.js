/**
 * The trace as the viewer holds it: columns of all slices by track, lane and time, made of one pack or several.
 */
import { visible } from '../core/text.js';
import { undrift, viewTime } from './clock.js';
import { readLinks } from './links.js';
import { Pack } from './pack.js';

/** @typedef {{track: number, first: number, count: number}} Lane slices of a lane never overlap */
/** @typedef {{number: number, id: string, label: string, type: string, group: string, device: number|null,
 *   holds: string|null, source: number, firstLane: number, laneCount: number}} Track */
/** @typedef {{number: number, label: string, group: string, unit: string|null, source: number,
 *   time: Float64Array, value: Float64Array, low: number, high: number}} Counter */
/** @typedef {{name: string, start: number, end: number, hostStart: number, source: number}} Step */
/** @typedef {import('./clock.js').Moved & {firstSlice: number, slices: number, label: string, header: any,
 *   pack: Pack}} Source */
/** @typedef {{pack: ArrayBuffer, ranks: number[]}} Links the collectives of a job, and which rank each source is */
/** @typedef {{labels?: string[], align?: string, align_step?: number, moves?: (import('./clock.js').Move|null)[],
 *   links?: Links|null}} ReadOptions */
/** @typedef {{slices: number, start: Float64Array, dur: Float64Array|Uint32Array, name: Uint16Array|Uint32Array,
 *   id: Int32Array, texts: string[], kinds: Uint8Array, categories: Uint8Array, precisions: (string|null)[],
 *   kindNames: string[], flowKinds: string[], categoryList: {name: string, label: string, busy: boolean}[],
 *   tracks: Track[], lanes: Lane[], counters: Counter[], steps: Step[], sources: Source[], begin: number, end: number,
 *   peers: Map<number, number[]>, links: Links|null, flowSource: Int32Array, flowTarget: Int32Array,
 *   flowKind: Uint8Array, byTarget: Int32Array, gaps: Record<string, Int32Array>}} Model */

const SHIFT = 2 ** 26;
const GAP_COLUMNS = ['at', 'during', 'call', 'op', 'step', 'crosses'];

/**
 * @param {ArrayBuffer[]} buffers
 * @param {ReadOptions} options
 * @param {(done: number, of: number) => void} progress
 * @returns {Promise<Model>}
 */
export async function readModel(buffers, options, progress) {
  const packs = buffers.map((buffer) => new Pack(buffer));
  const total = packs.reduce((sum, pack) => sum + pack.slices, 0);
  const names = new Names();
  const headers = await Promise.all(packs.map((pack) => pack.json('header')));
  const offsets = alignments(headers, options.align ?? 'clock', options.align_step ?? 0);
  const longs = packs.some((pack) => pack.sections.dur.width > 4) || options.moves?.some((move) => move?.drift);
  /** @type {any} */
  const model = {
    slices: total, start: new Float64Array(total), dur: longs ? new Float64Array(total) : new Uint32Array(total),
    name: new Uint32Array(total), id: new Int32Array(total).fill(-1), tracks: [], lanes: [], counters: [], steps: [],
    sources: [], kindNames: headers[0].kinds, flowKinds: headers[0].flow_kinds, categoryList: headers[0].categories,
    begin: Infinity, end: -Infinity, peers: new Map(), links: options.links ?? null,
  };
  let first = 0;
  for (const [at, pack] of packs.entries()) {
    const move = options.moves?.[at];
    const source = { offset: offsets[at] + (move?.offset_ns ?? 0), drift: move?.drift ?? 0, driftAt: move?.at_ns ?? 0,
      firstSlice: first, slices: pack.slices, pack, header: headers[at],
      label: options.labels?.[at] ?? sourceLabel(headers[at], at, packs.length) };
    model.sources.push(source);
    const before = first;
    await readSource(model, source, at, names, () => progress(before + pack.slices / 2, total));
    first += pack.slices;
    progress(first, total);
  }
  joinFlows(model, []);
  model.gaps = Object.fromEntries(GAP_COLUMNS.map((key) => [key, new Int32Array(0)]));
  Object.assign(model, names.columns());
  if (names.size <= 65536) model.name = new Uint16Array(model.name);
  if (!(model.begin < model.end)) [model.begin, model.end] = [0, 1];
  return model;
}

/**
 * Read what no frame needs: ids, flows and what is known of gaps.
 * @param {Model} model
 */
export async function readRest(model) {
  const flows = [];
  /** @type {Record<string, Int32Array[]>} */
  const gaps = Object.fromEntries(GAP_COLUMNS.map((key) => [key, []]));
  for (const { pack, firstSlice } of model.sources) {
    model.id.set(await pack.ints('id'), firstSlice);
    flows.push(await readFlows(pack, firstSlice));
    for (const key of GAP_COLUMNS) {
      const shift = key === 'step' || key === 'crosses' ? 0 : firstSlice;
      gaps[key].push(shifted(await pack.ints(`gaps.${key}`), shift));
    }
  }
  joinFlows(model, flows);
  if (model.links) model.peers = await readLinks(model, model.links);
  model.gaps = Object.fromEntries(Object.entries(gaps).map(([key, parts]) => [key, joined(parts)]));
}

/**
 * @param {ArrayLike<number>} values
 * @param {number} shift what is added to all that are not negative
 */
function shifted(values, shift) {
  const found = new Int32Array(values.length);
  for (let i = 0; i < found.length; i += 1) found[i] = values[i] < 0 ? -1 : values[i] + shift;
  return found;
}

/** @param {Int32Array[]} parts */
function joined(parts) {
  const found = new Int32Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    found.set(part, at);
    at += part.length;
  }
  return found;
}

/**
 * @param {any} header
 * @param {number} at
 * @param {number} of
 */
function sourceLabel(header, at, of) {
  if (header.rank !== null && header.rank !== undefined) return `rank ${header.rank}`;
  return of > 1 ? `run ${at + 1}` : '';
}

/**
 * What is added to the times of each source: by clock where all know theirs, by a step where asked for. Of other runs
 * it is the step of that name, as runs that were recorded for other steps have it elsewhere, else that in its place.
 * @param {any[]} headers
 * @param {string} align
 * @param {number} [at] the step's place in the first source
 * @returns {number[]}
 */
export function alignments(headers, align, at = 0) {
  if (align === 'steps') {
    const name = at ? headers[0].steps[at]?.name : null;
    const starts = headers.map(({ steps, extent_ns: extent }) => (
      (steps.find((/** @type {any} */ step) => step.name === name) ?? steps[Math.min(at, steps.length - 1)])?.start_ns
        ?? extent[0]));
    return starts.map((start) => starts[0] - start);
  }
  const epochs = headers.map((header) => header.epoch_ns);
  if (headers.length < 2 || epochs.some((epoch) => !epoch)) return headers.map(() => 0);
  return epochs.map((epoch) => Number(BigInt(epoch) - BigInt(epochs[0])));
}

/** The names of all sources, each (text, kind, category) once. */
class Names {
  constructor() {
    /** @type {Map<string, number>} */
    this.known = new Map();
    /** @type {string[]} */
    this.texts = [];
    /** @type {number[]} */
    this.kinds = [];
    /** @type {number[]} */
    this.categories = [];
    /** @type {(string|null)[]} */
    this.precisions = [];
  }

  get size() {
    return this.texts.length;
  }

  /**
   * @param {string} text
   * @param {number} kind
   * @param {number} category
   * @param {string|null} precision
   * @returns {number}
   */
  number(text, kind, category, precision) {
    const key = `${kind} ${category} ${text}`;
    const found = this.known.get(key);
    if (found !== undefined) return found;
    this.known.set(key, this.size);
    this.texts.push(text);
    this.kinds.push(kind);
    this.categories.push(category);
    this.precisions.push(precision);
    return this.size - 1;
  }

  columns() {
    return { texts: this.texts, kinds: Uint8Array.from(this.kinds), categories: Uint8Array.from(this.categories),
      precisions: this.precisions };
  }
}

/**
 * @param {any} model
 * @param {Source} source
 * @param {number} at
 * @param {Names} names
 * @param {() => void} halfway
 */
async function readSource(model, source, at, names, halfway) {
  const { pack, header, offset, firstSlice } = source;
  const [gap, dur, name, texts, kinds, categories, precisions] = await Promise.all([
    pack.ints('gap'), pack.ints('dur'), pack.ints('name'), pack.json('names'),
    pack.ints('names.kind'), pack.ints('names.category'), pack.json('names.precision'),
  ]);
  halfway();
  const numbers = Uint32Array.from(texts, (/** @type {string} */ text, /** @type {number} */ k) => (
    names.number(visible(text), kinds[k], categories[k], precisions[k])));
  model.dur.set(dur, firstSlice);
  const nameOf = model.name;
  const startOf = model.start;
  // A pack's own numbers are those of the model where it is the first, unless names look alike.
  if (numbers.every((number, k) => number === k)) nameOf.set(name, firstSlice);
  else for (let i = 0; i < pack.slices; i += 1) nameOf[firstSlice + i] = numbers[name[i]];
  let next = firstSlice;
  for (const track of header.tracks) {
    const firstLane = model.lanes.length;
    for (const [start, count] of track.lanes) {
      model.lanes.push({ track: model.tracks.length, first: next, count });
      let time = start + offset;
      for (let i = next; i < next + count; i += 1) {
        time += gap[i - firstSlice];
        startOf[i] = time;
        time += dur[i - firstSlice];
      }
      next += count;
    }
    model.tracks.push({ ...track, label: visible(track.label), group: visible(track.group), source: at, firstLane,
      number: model.tracks.length, lanes: undefined, laneCount: track.lanes.length });
  }
  if (source.drift) {
    const end = firstSlice + source.slices;
    undrift(source, startOf.subarray(firstSlice, end), model.dur.subarray(firstSlice, end));
  }
  const shown = (/** @type {number} */ time) => viewTime(source, time);
  model.begin = Math.min(model.begin, shown(header.extent_ns[0]));
  model.end = Math.max(model.end, shown(header.extent_ns[1]));
  for (const step of header.steps) {
    model.steps.push({ name: step.name, start: shown(step.start_ns), end: shown(step.end_ns),
      hostStart: shown(step.host_start_ns), source: at });
  }
  for (const counter of header.counters) model.counters.push(await readCounter(model, source, at, counter));
}

/**
 * @param {any} model
 * @param {Source} source
 * @param {number} at
 * @param {any} about
 * @returns {Promise<Counter>}
 */
async function readCounter(model, source, at, about) {
  const time = Float64Array.from(await source.pack.ints(`${about.id}.time`), (t) => viewTime(source, t));
  const section = `${about.id}.value`;
  const isFloat = source.pack.sections[section].type === 'floats';
  const value = isFloat ? await source.pack.floats(section) : Float64Array.from(await source.pack.ints(section));
  let low = 0;
  let high = 0;
  for (const one of value) {
    if (one < low) low = one;
    if (one > high) high = one;
  }
  return { number: model.counters.length, label: visible(about.label),
    group: visible(about.group), unit: about.unit, source: at,
    time, value, low, high };
}

/**
 * @param {Pack} pack
 * @param {number} first
 */
async function readFlows(pack, first) {
  const [source, target, kind] = await Promise.all([
    pack.ints('flows.source'), pack.ints('flows.target'), pack.ints('flows.kind')]);
  return { source: shifted(source, first), target: shifted(target, first), kind: Uint8Array.from(kind) };
}

/**
 * @param {any} model
 * @param {{source: Int32Array, target: Int32Array, kind: Uint8Array}[]} flows
 */
function joinFlows(model, flows) {
  const size = flows.reduce((sum, part) => sum + part.source.length, 0);
  model.flowSource = new Int32Array(size);
  model.flowTarget = new Int32Array(size);
  model.flowKind = new Uint8Array(size);
  let at = 0;
  for (const part of flows) {
    model.flowSource.set(part.source, at);
    model.flowTarget.set(part.target, at);
    model.flowKind.set(part.kind, at);
    at += part.source.length;
  }
  // Positions of the flows in the order of their targets.
  const target = model.flowTarget;
  // As one number each, which sorts without a function: both are below 2^26 (packs hold some ten million slices).
  const keys = new Float64Array(size);
  for (let i = 0; i < size; i += 1) keys[i] = target[i] * SHIFT + i;
  keys.sort();
  model.byTarget = new Int32Array(size);
  for (let i = 0; i < size; i += 1) model.byTarget[i] = keys[i] % SHIFT;
}
