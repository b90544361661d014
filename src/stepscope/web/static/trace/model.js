/**
 * The trace as the viewer holds it: columns of all slices by track, lane and time, made of one pack or several.
 */
import { Pack } from './pack.js';

/** @typedef {{track: number, first: number, count: number}} Lane slices of a lane never overlap */
/** @typedef {{number: number, id: string, label: string, type: string, group: string, device: number|null,
 *   holds: string|null, source: number, firstLane: number, laneCount: number}} Track */
/** @typedef {{number: number, label: string, group: string, unit: string|null, source: number,
 *   time: Float64Array, value: Float64Array, low: number, high: number}} Counter */
/** @typedef {{name: string, start: number, end: number, source: number}} Step */
/** @typedef {{offset: number, firstSlice: number, slices: number, label: string, header: any, pack: Pack}} Source */
/** @typedef {{slices: number, start: Float64Array, dur: Float64Array|Uint32Array, name: Uint16Array|Uint32Array,
 *   id: Int32Array, texts: string[], kinds: Uint8Array, categories: Uint8Array, precisions: (string|null)[],
 *   kindNames: string[], flowKinds: string[], categoryList: {name: string, label: string, busy: boolean}[],
 *   tracks: Track[], lanes: Lane[], counters: Counter[], steps: Step[], sources: Source[], begin: number, end: number,
 *   flowSource: Int32Array, flowTarget: Int32Array, flowKind: Uint8Array, byTarget: Int32Array,
 *   gaps: Record<string, Int32Array>}} Model */

export const NO_CATEGORY = 255;

/**
 * @param {ArrayBuffer[]} buffers
 * @param {{labels?: string[], align?: string}} options
 * @param {(done: number, of: number) => void} progress
 * @returns {Promise<Model>}
 */
export async function readModel(buffers, options, progress) {
  const packs = buffers.map((buffer) => new Pack(buffer));
  const total = packs.reduce((sum, pack) => sum + pack.slices, 0);
  const names = new Names();
  const headers = await Promise.all(packs.map((pack) => pack.json('header')));
  const offsets = alignments(headers, options.align ?? 'clock');
  const longs = packs.some((pack) => pack.sections.dur.width > 4);
  /** @type {any} */
  const model = {
    slices: total, start: new Float64Array(total), dur: longs ? new Float64Array(total) : new Uint32Array(total),
    name: new Uint32Array(total), id: new Int32Array(total), tracks: [], lanes: [], counters: [], steps: [],
    sources: [], kindNames: headers[0].kinds, flowKinds: headers[0].flow_kinds, categoryList: headers[0].categories,
    begin: Infinity, end: -Infinity,
  };
  /** @type {{source: Int32Array, target: Int32Array, kind: Uint8Array}[]} */
  const flows = [];
  /** @type {Record<string, number[]>} */
  const gaps = { at: [], during: [], call: [], op: [], step: [], crosses: [] };
  let first = 0;
  for (const [at, pack] of packs.entries()) {
    const source = { offset: offsets[at], firstSlice: first, slices: pack.slices, pack, header: headers[at],
      label: options.labels?.[at] ?? sourceLabel(headers[at], at, packs.length) };
    model.sources.push(source);
    await readSource(model, source, at, names);
    flows.push(await readFlows(pack, first));
    await readGaps(pack, first, gaps);
    first += pack.slices;
    progress(first, total);
  }
  joinFlows(model, flows);
  model.gaps = Object.fromEntries(Object.entries(gaps).map(([key, values]) => [key, Int32Array.from(values)]));
  Object.assign(model, names.columns());
  if (names.size <= 65536) model.name = Uint16Array.from(model.name);
  if (!(model.begin < model.end)) [model.begin, model.end] = [0, 1];
  return model;
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
 * What is added to the times of each source: by clock where all know theirs, by the first step where asked for.
 * @param {any[]} headers
 * @param {string} align
 * @returns {number[]}
 */
export function alignments(headers, align) {
  if (align === 'steps') {
    const starts = headers.map((header) => header.steps[0]?.start_ns ?? header.extent_ns[0]);
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
 */
async function readSource(model, source, at, names) {
  const { pack, header, offset, firstSlice } = source;
  const [gap, dur, id, name, texts, kinds, categories, precisions] = await Promise.all([
    pack.ints('gap'), pack.ints('dur'), pack.ints('id'), pack.ints('name'), pack.json('names'),
    pack.ints('names.kind'), pack.ints('names.category'), pack.json('names.precision'),
  ]);
  const numbers = Uint32Array.from(texts, (/** @type {string} */ text, /** @type {number} */ k) => (
    names.number(text, kinds[k], categories[k], precisions[k])));
  model.dur.set(dur, firstSlice);
  model.id.set(id, firstSlice);
  for (let i = 0; i < pack.slices; i += 1) model.name[firstSlice + i] = numbers[name[i]];
  let next = firstSlice;
  for (const track of header.tracks) {
    const firstLane = model.lanes.length;
    for (const [start, count] of track.lanes) {
      model.lanes.push({ track: model.tracks.length, first: next, count });
      let time = start + offset;
      for (let i = next; i < next + count; i += 1) {
        time += gap[i - firstSlice];
        model.start[i] = time;
        time += model.dur[i];
      }
      next += count;
    }
    model.tracks.push({ ...track, number: model.tracks.length, source: at, firstLane, lanes: undefined,
      laneCount: track.lanes.length });
  }
  model.begin = Math.min(model.begin, header.extent_ns[0] + offset);
  model.end = Math.max(model.end, header.extent_ns[1] + offset);
  for (const step of header.steps) {
    model.steps.push({ name: step.name, start: step.start_ns + offset, end: step.end_ns + offset, source: at });
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
  const time = Float64Array.from(await source.pack.ints(`${about.id}.time`), (t) => t + source.offset);
  const section = `${about.id}.value`;
  const isFloat = source.pack.sections[section].type === 'floats';
  const value = isFloat ? await source.pack.floats(section) : Float64Array.from(await source.pack.ints(section));
  let low = 0;
  let high = 0;
  for (const one of value) {
    if (one < low) low = one;
    if (one > high) high = one;
  }
  return { number: model.counters.length, label: about.label, group: about.group, unit: about.unit, source: at,
    time, value, low, high };
}

/**
 * @param {Pack} pack
 * @param {number} first
 */
async function readFlows(pack, first) {
  const [source, target, kind] = await Promise.all([
    pack.ints('flows.source'), pack.ints('flows.target'), pack.ints('flows.kind')]);
  return { source: Int32Array.from(source, (i) => i + first), target: Int32Array.from(target, (i) => i + first),
    kind: Uint8Array.from(kind) };
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
  model.byTarget = Int32Array.from(target.keys()).sort((a, b) => target[a] - target[b] || a - b);
}

/**
 * @param {Pack} pack
 * @param {number} first
 * @param {Record<string, number[]>} gaps
 */
async function readGaps(pack, first, gaps) {
  for (const key of Object.keys(gaps)) {
    const shift = key === 'step' || key === 'crosses' ? 0 : first;
    for (const value of await pack.ints(`gaps.${key}`)) gaps[key].push(value < 0 ? -1 : value + shift);
  }
}
