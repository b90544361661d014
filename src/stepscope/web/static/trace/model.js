/**
 * The trace as the viewer holds it: columns of all slices by track, lane and time, made of one pack or several.
 */
import { visible } from '../core/text.js';
import { undrift, viewTime } from './clock.js';
import { FOUND, ROOM } from './found.js';
import { readLinks } from './links.js';
import { Pack } from './pack.js';

/** @typedef {import('./pack.js').Header} Header */
/** @typedef {{track: number, first: number, count: number}} Lane slices of a lane never overlap */
/** @typedef {{number: number, id: string, label: string, type: string, group: string, device: number|null,
 *   holds: string|null, source: number, firstLane: number, laneCount: number}} Track */
/** @typedef {{number: number, label: string, group: string, unit: string|null, source: number,
 *   time: Float64Array, value: Float64Array, low: number, high: number}} Counter */
/** @typedef {{name: string, start: number, end: number, hostStart: number, source: number}} Step */
/** @typedef {import('./clock.js').Moved & {firstSlice: number, slices: number, label: string, pack: Pack,
 *   header: Header}} Source */
/** @typedef {{pack: ArrayBuffer, ranks: number[]}} Links the collectives of a job, and which rank each source is */
/** @typedef {{labels?: string[], align?: string, align_step?: number,
 *   align_op?: import('./align.js').ByOp|null, moves?: (import('./clock.js').Move|null)[],
 *   links?: Links|null}} ReadOptions */
/** @typedef {{slices: number, start: Float64Array, dur: Float64Array|Uint32Array, name: Uint16Array|Uint32Array,
 *   id: Int32Array, texts: string[], kinds: Uint8Array, categories: Uint8Array, precisions: (string|null)[],
 *   kindNames: string[], flowKinds: string[], categoryList: import('./pack.js').Category[],
 *   tracks: Track[], lanes: Lane[], counters: Counter[], steps: Step[], sources: Source[], begin: number, end: number,
 *   peers: Map<number, number[]>, links: Links|null, flowSource: Int32Array, flowTarget: Int32Array,
 *   flowKind: Uint8Array, byTarget: Int32Array, gaps: Record<string, Int32Array>,
 *   recorded: {slices: number, tracks: number, lanes: number, texts: number, precisions: number}}} Model `slices` and
 *   what is `recorded`: without what queries found, which stands behind it */

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
  const names = new Names();
  const headers = await Promise.all(packs.map((pack) => pack.header()));
  const sources = sourcesOf(packs, headers, options);
  const isLong = packs.some((pack) => pack.sections.dur.width > 4) || sources.some(({ drift }) => drift);
  const model = emptyModel(headers[0], sources.reduce((sum, { slices }) => sum + slices, 0), isLong);
  model.links = options.links ?? null;
  for (const [at, source] of sources.entries()) {
    const { firstSlice, slices } = source;
    model.sources.push(source);
    await readSource(model, source, at, names, () => progress(firstSlice + slices / 2, model.slices));
    progress(firstSlice + slices, model.slices);
  }
  Object.assign(model, names.columns());
  if (names.size + ROOM <= 65536) model.name = new Uint16Array(model.name);
  const { slices, tracks, lanes, texts, precisions } = model;
  model.recorded = { slices, tracks: tracks.length, lanes: lanes.length, texts: texts.length,
    precisions: precisions.length };
  if (!(model.begin < model.end)) [model.begin, model.end] = [0, 1];
  return model;
}

/**
 * Where each pack stands among the slices, and in time.
 * @param {Pack[]} packs
 * @param {Header[]} headers
 * @param {ReadOptions} options
 * @returns {Source[]}
 */
function sourcesOf(packs, headers, { align = 'clock', align_step: step = 0, moves = [], labels = [] }) {
  const offsets = alignments(headers, align, step);
  let firstSlice = 0;
  return packs.map((pack, at) => {
    const { offset_ns: moved = 0, drift = 0, at_ns: driftAt = 0 } = moves[at] ?? {};
    const source = { offset: offsets[at] + moved, drift, driftAt, firstSlice, slices: pack.slices, pack,
      header: headers[at], label: labels[at] ?? sourceLabel(headers[at], at, packs.length) };
    firstSlice += pack.slices;
    return source;
  });
}

/**
 * Room for so many slices, and for what queries will find.
 * @param {Header} header what kinds there are: the same in all packs
 * @param {number} slices
 * @param {boolean} isLong whether durations need more than 32 bits
 * @returns {Model}
 */
function emptyModel(header, slices, isLong) {
  const room = slices + ROOM;
  return {
    slices, start: new Float64Array(room), dur: isLong ? new Float64Array(room) : new Uint32Array(room),
    name: new Uint32Array(room), id: new Int32Array(room).fill(-1), tracks: [], lanes: [], counters: [], steps: [],
    sources: [], kindNames: [...header.kinds, FOUND], flowKinds: header.flow_kinds, categoryList: header.categories,
    begin: Infinity, end: -Infinity, peers: new Map(), links: null,
    recorded: { slices, tracks: 0, lanes: 0, texts: 0, precisions: 0 },
    ...new Names().columns(), ...joinedFlows([]),
    gaps: Object.fromEntries(GAP_COLUMNS.map((key) => [key, new Int32Array(0)])),
  };
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
  Object.assign(model, joinedFlows(flows));
  if (model.links) model.peers = await readLinks(model, model.links);
  model.gaps = Object.fromEntries(Object.entries(gaps).map(([key, parts]) => [key, joined(parts)]));
}

/**
 * @param {ArrayLike<number>} values
 * @param {number} shift what is added to all that are not negative
 */
function shifted(values, shift) {
  const moved = new Int32Array(values.length);
  for (let i = 0; i < moved.length; i += 1) moved[i] = values[i] < 0 ? -1 : values[i] + shift;
  return moved;
}

/** @param {Int32Array[]} parts */
function joined(parts) {
  const whole = new Int32Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

/**
 * @param {Header} header
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
 * @param {{steps: {name: string, start_ns: number}[], extent_ns: number[], epoch_ns: string|null}[]} headers
 * @param {string} align
 * @param {number} [at] the step's place in the first source
 * @returns {number[]}
 */
export function alignments(headers, align, at = 0) {
  if (align === 'steps') {
    const name = at ? headers[0].steps[at]?.name : null;
    const starts = headers.map(({ steps, extent_ns: extent }) => (
      (steps.find((step) => step.name === name) ?? steps[Math.min(at, steps.length - 1)])?.start_ns
        ?? extent[0]));
    return starts.map((start) => starts[0] - start);
  }
  const epochs = headers.map((header) => header.epoch_ns);
  if (headers.length < 2 || epochs.some((epoch) => !epoch)) return headers.map(() => 0);
  return epochs.map((epoch) => Number(BigInt(epoch ?? 0) - BigInt(epochs[0] ?? 0)));
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
    const code = this.known.get(key);
    if (code !== undefined) return code;
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
 * @param {Model} model
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
  const numbers = Uint32Array.from(texts, (text, k) => (
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
      number: model.tracks.length, laneCount: track.lanes.length });
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
 * @param {Model} model
 * @param {Source} source
 * @param {number} at
 * @param {import('./pack.js').PackedCounter} about
 * @returns {Promise<Counter>}
 */
async function readCounter(model, source, at, about) {
  const time = Float64Array.from(await source.pack.ints(`${about.id}.time`), (t) => viewTime(source, t));
  const section = `${about.id}.value`;
  const isFloat = source.pack.sections[section].type === 'floats';
  const value = isFloat ? await source.pack.floats(section) : Float64Array.from(await source.pack.ints(section));
  return { number: model.counters.length, label: visible(about.label),
    group: visible(about.group), unit: about.unit, source: at,
    time, value, ...ends(value) };
}

/** The least and greatest, of which one is 0 where no value is beyond it. @param {Float64Array} value */
function ends(value) {
  let low = 0;
  let high = 0;
  for (const one of value) {
    if (one < low) low = one;
    if (one > high) high = one;
  }
  return { low, high };
}

/**
 * A counter of samples that were not recorded as one, in any order.
 * @param {Model} model
 * @param {{label: string, group: string, unit: string|null, samples: [number, number][]}} given times and values
 */
export function addCounter(model, { label, group, unit, samples }) {
  const sorted = [...samples].sort((a, b) => a[0] - b[0]);
  const [time, value] = [0, 1].map((at) => Float64Array.from(sorted, (sample) => sample[at]));
  const made = { number: model.counters.length, label: visible(label), group, unit, source: 0, ...ends(value) };
  model.counters.push({ ...made, time, value });
  return made;
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

/** @param {{source: Int32Array, target: Int32Array, kind: Uint8Array}[]} flows */
function joinedFlows(flows) {
  const flowSource = joined(flows.map((part) => part.source));
  const flowTarget = joined(flows.map((part) => part.target));
  const size = flowTarget.length;
  const flowKind = new Uint8Array(size);
  let at = 0;
  for (const part of flows) {
    flowKind.set(part.kind, at);
    at += part.kind.length;
  }
  // Positions of the flows in the order of their targets.
  // As one number each, which sorts without a function: both are below 2^26 (packs hold some ten million slices).
  const keys = new Float64Array(size);
  for (let i = 0; i < size; i += 1) keys[i] = flowTarget[i] * SHIFT + i;
  keys.sort();
  const byTarget = new Int32Array(size);
  for (let i = 0; i < size; i += 1) byTarget[i] = keys[i] % SHIFT;
  return { flowSource, flowTarget, flowKind, byTarget };
}
