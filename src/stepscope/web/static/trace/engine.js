/** Everything the viewer asks of a trace, in one place: in a worker, or on the page where there can be none. */
import { visible } from '../core/text.js';
import { deviceParts, sumTrack } from './aggregate.js';
import { background, coloursOf, sourceTint } from './colours.js';
import { Details } from './detail.js';
import { drawCounter, scaleOf, series } from './counter.js';
import { chromeEvents } from './export.js';
import { byRun, difference, ofRun, ofWork, sandwich } from './flame.js';
import { grouped } from './groups.js';
import { putFound } from './found.js';
import { gapList, gapOf, longestGaps } from './gaps.js';
import { finest, levelsOf, lowerBound } from './lod.js';
import { legend } from './legend.js';
import { addCounter, readModel, readRest } from './model.js';
import { alignByOp, opOf } from './align.js';
import { across, beside, brief, enclosing, flowsOf, laneOf, occurrences, sliceAtOf, spread } from './navigate.js';
import { active, overview } from './overview.js';
import { locate, neighbour, stepped, sumByName, sumByRun, sumWithin } from './pick.js';
import { findSlices, kindsIn, parseQuery, unheard } from './query.js';
import { Raster } from './raster.js';
import { windowAt } from './steps.js';

/** @typedef {{lanes: number[], counter: number, y: number, height: number, tint: boolean, shared: number[],
 *   log: boolean, mode: import('./counter.js').Mode}} FrameRow `counter` is -1 for slices; `shared`: the counters whose
 *   scale it has */
/** @typedef {{begin: number, end: number, width: number, height: number, scale: number, rows: FrameRow[],
 *   pinned: FrameRow[], pinnedHeight: number}} FrameRequest the pinned rows lie above the others */

const HITS_LISTED = 2_000;
/** Levels are made for so long at a time, so that frames come between. */
const TURN_MS = 12;
const FLOWS_TOLD = 400;
/** What is there after `load`, which is always asked first. @type {unknown} */
const NOT_LOADED = null;

/**
 * What an engine answers to a method by its name.
 * @param {Engine} engine
 * @param {import('./client.js').Method} method
 * @param {unknown} given
 * @param {(done: number, of: number) => void} progress
 */
export function answer(engine, method, given, progress) {
  return /** @type {Function} */ (engine[method]).call(engine, given, progress);
}

export class Engine {
  constructor() {
    this.model = /** @type {import('./model.js').Model} */ (NOT_LOADED);
    /** @type {(import('./lod.js').Level[]|undefined)[]} */
    this.levels = [];
    /** @type {Promise<void>|null} */
    this.rest = null;
    this.colours = /** @type {import('./raster.js').Colours} */ (NOT_LOADED);
    /** @type {import('./colours.js').Look} */
    this.look = { mode: 'category', palette: 'standard', theme: 'light' };
    this.raster = new Raster();
    this.hits = new Int32Array(0);
    /** @type {Int32Array} */
    this.gapsByLength = new Int32Array(0);
    /** @type {{name: number, source: number, slices: Int32Array}|null} */
    this.same = null;
    /** @type {Map<string, import('./counter.js').Series>} */
    this.series = new Map();
    /** @type {Details[]} */
    this.details = [];
  }

  /**
   * @param {{packs: ArrayBuffer[], options: import('./model.js').ReadOptions}} given
   * @param {(done: number, of: number) => void} progress
   */
  async load({ packs, options }, progress) {
    const model = await readModel(packs, options, progress);
    const unaligned = options.align_op ? alignByOp(model, options.align_op) : [];
    this.model = model;
    this.levels = new Array(model.lanes.length);
    this.details = model.sources.map((source) => new Details(source.pack));
    this.paint(this.look);
    return {
      begin: model.begin, end: model.end, slices: model.slices, tracks: [...model.tracks], steps: model.steps,
      sources: model.sources.map(({ offset, drift, driftAt, label, header }) => (
        { offset, drift, driftAt, label, header })),
      counters: model.counters.map(({ number, label, group, unit, source, low, high }) => (
        { number, label, group, unit, source, low, high })),
      kindNames: model.kindNames, kinds: kindsIn(model, 'kind'),
      lanes: [...model.lanes], names: [...model.texts], nameKinds: model.kinds, active: active(model), unaligned,
    };
  }

  /** By what runs are brought together at a slice. @param {{slice: number}} where */
  op({ slice }) {
    return opOf(this.model, brief(this.model, slice));
  }

  /** Everything but what frames need is read when the first frame is drawn, or it is first asked for. */
  async finish() {
    this.rest ??= readRest(this.model);
    await this.rest;
    return true;
  }

  /** Make all levels: until they are there, frames are drawn of the slices themselves. */
  async prepare() {
    let turn = performance.now();
    for (const [at, lane] of this.model.lanes.entries()) {
      this.levels[at] ??= levelsOf(this.model, lane);
      if (performance.now() - turn < TURN_MS) continue;
      await new Promise((resolve) => { setTimeout(resolve); });
      turn = performance.now();
    }
    return true;
  }

  /** @param {number} lane */
  levelsOf(lane) {
    return this.levels[lane] ?? [finest(this.model, this.model.lanes[lane])];
  }

  /** Answers, to say that the worker runs. */
  ping() {
    return true;
  }

  /** @param {import('./colours.js').Look} look */
  paint(look) {
    this.look = look;
    this.colours = coloursOf(this.model, look);
    return { colours: this.colours };
  }

  /** What the colours stand for. */
  legend() {
    return legend(this.model, this.colours, this.look.mode);
  }

  /** @param {FrameRequest} request */
  frame(request) {
    const { width, height, begin, end, scale } = request;
    const pixels = new Uint32Array(width * height);
    const back = background(this.look.theme);
    pixels.fill((0xff000000 | back) >>> 0);
    const target = { pixels, width, height, begin, end };
    /** @type {[number, number, number][]} */
    const scales = [...request.rows, ...request.pinned].flatMap((row) => (
      row.counter >= 0 ? [[row.counter, this.scaleOf(row).low, this.scaleOf(row).high]] : []));
    const below = this.drawRows(target, request.rows, back, scale);
    pixels.fill((0xff000000 | back) >>> 0, 0, request.pinnedHeight * width);
    const above = this.drawRows(target, request.pinned, back, scale);
    const labels = new Float64Array(below.length + above.length);
    labels.set(below);
    labels.set(above, below.length);
    return { pixels: pixels.buffer, labels, belowCount: below.length, scales };
  }

  /** @param {FrameRow} row */
  scaleOf(row) {
    return scaleOf(row.shared.map((number) => this.seriesOf(number, row.mode)), row.log);
  }

  /**
   * @param {import('./raster.js').Target} target
   * @param {FrameRow[]} wanted
   * @param {number} back
   * @param {number} scale
   * @returns {Float64Array} the labels
   */
  drawRows(target, wanted, back, scale) {
    const rows = [];
    for (const row of wanted) {
      if (row.counter >= 0) this.drawCounter(target, row);
      for (const lane of row.lanes) {
        const { first, track } = this.model.lanes[lane];
        const tint = this.look.mode === 'rank' ? sourceTint(this.model.tracks[track].source) : null;
        rows.push({ levels: this.levelsOf(lane), first, y: row.y, height: row.height, tint });
      }
    }
    return this.raster.draw(target, rows, this.colours, back, scale);
  }

  /**
   * @param {import('./raster.js').Target} target
   * @param {FrameRow} row
   */
  drawCounter(target, row) {
    const dark = this.look.theme !== 'light';
    const colours = dark ? { line: 0xffd8a060, area: 0xff54402c } : { line: 0xffb4702c, area: 0xfff2dcc8 };
    drawCounter(target, this.seriesOf(row.counter, row.mode), row, colours, this.scaleOf(row).scaled);
  }

  /**
   * @param {number} number
   * @param {import('./counter.js').Mode} mode
   */
  seriesOf(number, mode) {
    const key = `${number} ${mode}`;
    const known = this.series.get(key) ?? series(this.model.counters[number], mode);
    this.series.set(key, known);
    return known;
  }

  /** @param {{lanes: number[], time: number, slop: number}} where `lanes`: all that are drawn in one row */
  at({ lanes, time, slop }) {
    const slice = sliceAtOf(this.model, lanes, time, slop);
    return slice < 0 ? null : brief(this.model, slice);
  }

  /** @param {{counter: number, time: number, span: number}} where `span`: the time that a pixel shows */
  sample({ counter, time, span }) {
    const held = this.model.counters[counter];
    const at = lowerBound(held.time, time + 0.5) - 1;
    return at < 0 ? null : { time: held.time[at], value: held.value[at],
      change: at > 0 ? held.value[at] - held.value[at - 1] : NaN, ...this.within(counter, time, span) };
  }

  /**
   * The samples of a pixel: their number, the least and the greatest.
   * @param {number} counter
   * @param {number} time
   * @param {number} span
   */
  within(counter, time, span) {
    const { time: times, extremes } = this.seriesOf(counter, 'value');
    const [from, to] = [lowerBound(times, time - span / 2), lowerBound(times, time + span / 2)];
    const [low, high] = extremes.over(from, to);
    return { count: to - from, low, high };
  }

  /** @param {{slice: number}} given */
  brief({ slice }) {
    return brief(this.model, slice);
  }

  /**
   * Everything about one slice.
   * @param {{slice: number}} given
   */
  async info({ slice }) {
    await this.finish();
    const { model } = this;
    const about = brief(model, slice);
    const source = model.sources[about.source];
    const flows = flowsOf(model, slice);
    const told = (/** @type {{slice: number, kind: string}[]} */ list) => (
      list.slice(0, FLOWS_TOLD).map((one) => ({ kind: one.kind, to: brief(model, one.slice) })));
    const launch = flows.into.find((one) => one.kind === 'launch')?.slice ?? -1;
    const within = enclosing(model, launch >= 0 ? launch : slice).map((one) => brief(model, one));
    const same = this.sameName(slice);
    return {
      about,
      arguments: await this.details[about.source].of(slice - source.firstSlice),
      into: told(flows.into), out: told(flows.out), outCount: flows.out.length, intoCount: flows.into.length,
      within, launch: launch >= 0 ? brief(model, launch) : null,
      gap: gapOf(model, slice),
      step: windowAt(model, model.tracks[about.track], about.start),
      spread: spread(model, same),
      parts: about.depth >= 0 ? sumWithin(model, slice) : [],
    };
  }

  /**
   * The gaps of a slice's device, longest first; while one walks along them they are not sorted again.
   * @param {number} slice
   */
  longest(slice) {
    if (!this.gapsByLength.includes(slice)) this.gapsByLength = longestGaps(this.model, slice);
    return this.gapsByLength;
  }

  /** The slices of the name of a slice in its run. @param {number} slice */
  sameName(slice) {
    const name = this.model.name[slice];
    const source = this.model.tracks[this.model.lanes[laneOf(this.model, slice)].track].source;
    if (this.same?.name !== name || this.same.source !== source) {
      this.same = { name, source, slices: occurrences(this.model, name, this.model.sources[source]) };
    }
    return this.same.slices;
  }

  /**
   * The neighbour of a slice in some way; null for none.
   * @param {{slice: number, how: 'beside'|'across'|'same'|'flow'|'hit'|'gap', way: number}} given
   */
  async next({ slice, how, way }) {
    await this.finish();
    const { model } = this;
    let to = -1;
    if (how === 'beside') to = beside(model, slice, way);
    else if (how === 'across') to = across(model, slice, way);
    else if (how === 'gap') to = neighbour(this.longest(slice), slice, way);
    else if (how === 'same') to = neighbour(this.sameName(slice), slice, way);
    else if (how === 'hit') to = this.hits.length ? stepped(this.hits, slice, way) : -1;
    else {
      const { into, out } = flowsOf(model, slice);
      to = (way > 0 ? out : into)[0]?.slice ?? -1;
    }
    return to < 0 ? null : brief(model, to);
  }

  /** @param {{text: string}} given */
  search({ text }) {
    const { model } = this;
    const query = parseQuery(text);
    const error = query.error ?? unheard(model, query);
    const { unknown } = query;
    if (error || !query.terms.length) {
      this.hits = new Int32Array(0);
      return { error, unknown, count: 0, total: 0, listed: [], names: [], runs: [], bins: new Uint32Array(0) };
    }
    this.hits = findSlices(model, query);
    const bins = new Uint32Array(1024);
    const per = bins.length / (model.end - model.begin);
    for (const i of this.hits) {
      bins[Math.min(bins.length - 1, Math.floor((model.start[i] - model.begin) * per))] += 1;
    }
    const longest = this.hits.length > HITS_LISTED
      ? Int32Array.from(this.hits).sort((a, b) => model.dur[b] - model.dur[a]).subarray(0, HITS_LISTED) : this.hits;
    const listed = Array.from(longest, (i) => brief(model, i));
    const runs = sumByRun(model, this.hits);
    const total = runs.reduce((sum, run) => sum + run.total, 0);
    return { error, unknown, count: this.hits.length, total, listed, names: sumByName(model, this.hits), runs, bins };
  }

  /**
   * The hits in sight, to be marked; those that lie closer than `apart` to each other as one.
   * @param {{begin: number, end: number, lanes: number[], apart: number}} view
   * @returns {[number, number, number, boolean][]} lane, start, duration and whether it is several
   */
  marked({ begin, end, lanes, apart }) {
    const { model, hits } = this;
    /** @type {[number, number, number, boolean][]} */
    const marks = [];
    for (const lane of lanes) {
      const { first, count } = model.lanes[lane];
      for (let k = lowerBound(hits, first); k < hits.length && hits[k] < first + count; k += 1) {
        const i = hits[k];
        if (model.start[i] >= end) break;
        if (model.start[i] + model.dur[i] <= begin) continue;
        const last = marks[marks.length - 1];
        if (last?.[0] === lane && model.start[i] - last[1] - last[2] < apart) {
          last[2] = model.start[i] + model.dur[i] - last[1];
          last[3] = true;
        } else {
          marks.push([lane, model.start[i], model.dur[i], false]);
        }
      }
    }
    return marks;
  }

  /** @param {{begin: number, end: number, tracks: number[], most?: number}} range `most` names of each track */
  area({ begin, end, tracks, most }) {
    const { model } = this;
    const sums = tracks.map((track) => sumTrack(model, track, begin, end, most)).filter((sum) => sum.count);
    const devices = new Map(tracks.map((number) => model.tracks[number]).filter((track) => track.device !== null)
      .map((track) => [`${track.source} ${track.device}`, track]));
    return { sums, devices: [...devices.values()].map((track) => ({ group: track.group, source: track.source,
      parts: deviceParts(model, track.source, Number(track.device), begin, end) })) };
  }

  /**
   * @param {{range: import('./flame.js').Range, form: string, name: string, source: number,
   *   other: import('./flame.js').Range|null}} given
   */
  flame({ range: given, form, name, source, other }) {
    const range = ofWork(this.model, given);
    const left = given.tracks.length - range.tracks.length;
    if (form === 'sandwich') return { ...sandwich(this.model, ofRun(this.model, range, source), name), left };
    if (form === 'difference' && other) {
      return { tree: difference(this.model, range, ofWork(this.model, other)), left };
    }
    return { tree: byRun(this.model, range, form === 'time' ? 'time' : 'merged'), left };
  }

  /** @param {{text: string}} given */
  groups({ text }) {
    return grouped(this.model, text);
  }

  /**
   * Tracks of what queries found, in the place of those before; of each what is wrong with it, and what the page shows.
   * @param {{wanted: import('./found.js').Wanted[]}} given
   */
  found({ wanted }) {
    const { model } = this;
    const errors = putFound(model, wanted);
    const { tracks, lanes, texts } = model.recorded;
    this.levels.length = lanes;
    this.levels.length = model.lanes.length;
    this.paint(this.look);
    return { errors, tracks: model.tracks.slice(tracks), lanes: model.lanes.slice(lanes),
      names: model.texts.slice(texts) };
  }

  /** @param {Parameters<typeof addCounter>[1]} given */
  counter(given) {
    return addCounter(this.model, given);
  }

  /** @param {{begin: number, end: number, device: number|null}} given */
  async gaps(given) {
    await this.finish();
    return gapList(this.model, given);
  }

  /**
   * A range as events of the Chrome trace format, which Perfetto opens too; what queries found is in it already.
   * @param {{begin: number, end: number, tracks: number[]}} range
   */
  async events({ tracks, ...range }) {
    await this.finish();
    const { model } = this;
    const own = { ...range, tracks: tracks.filter((number) => number < model.recorded.tracks) };
    const told = await Promise.all(this.details.map((details) => details.all()));
    return chromeEvents(model, own, (slice) => {
      const at = model.sources.findLastIndex(({ firstSlice }) => firstSlice <= slice);
      return told[at](slice - model.sources[at].firstSlice);
    });
  }

  /** @param {{width: number}} given */
  overview({ width }) {
    return overview(this.model, (lane) => this.levelsOf(lane), width);
  }

  /** @param {{start: number, dur: number|null, name: string|null, track: string|null,
   *   source?: number|null}} wanted */
  locate(wanted) {
    return locate(this.model, { ...wanted, name: wanted.name === null ? null : visible(wanted.name) });
  }
}
