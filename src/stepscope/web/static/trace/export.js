/** A range of the trace as a file that Perfetto draws whole and stepscope reads. */
import { overlapping } from './aggregate.js';
import { flowsOf } from './navigate.js';

/** @typedef {import('./model.js').Model} Model */
/** @typedef {import('./model.js').Track} Track */
/** @typedef {(slice: number) => import('./detail.js').Argument[]} Told what the pack's tables say of a slice */

const MOST_EVENTS = 300_000;

/** What Kineto calls each kind. */
const CATEGORIES = /** @type {Record<string, string>} */ ({
  step: 'user_annotation', annotation: 'user_annotation', python_frame: 'python_function', module: 'python_function',
  host_op: 'cpu_op', runtime_call: 'cuda_runtime', sync: 'cuda_runtime', allocation: 'cuda_runtime',
  compile: 'cuda_runtime', overhead: 'overhead', kernel: 'kernel', collective: 'kernel', copy: 'gpu_memcpy',
  memset: 'gpu_memset', device_wait: 'cuda_sync', device_annotation: 'gpu_user_annotation',
});
const ON_DEVICE = ['step', 'annotation', 'module'];
const TRACKS = /** @type {Record<string, string>} */ (
  { stream: 'device_stream', group: 'device_line', thread: 'host_thread' });

/** Tables and columns of the pack as Kineto's and XLA's arguments. */
const ARGUMENTS = /** @type {Record<string, Record<string, string>>} */ ({
  host_ops: { sequence: 'Sequence number', forward_thread: 'Fwd thread id', input_dims: 'Input Dims',
    input_types: 'Input type', concrete_inputs: 'Concrete Inputs', call_stack: 'Call stack' },
  device_ops: { bytes: 'bytes', grid: 'grid', block: 'block', registers: 'registers per thread',
    shared_memory: 'shared memory', occupancy_pct: 'est. achieved occupancy %', collective: 'Collective name',
    process_group: 'Process Group Name', dtype: 'dtype', message_elements: 'In msg nelems', group_size: 'Group size' },
  xla_ops: { module: 'hlo_module', program: 'program_id', run: 'run_id', op: 'hlo_op', category: 'hlo_category',
    scope: 'tf_op', flops: 'flops', bytes_accessed: 'bytes_accessed', source: 'source',
    replica_groups: 'replica_groups' },
});

/**
 * Kineto-flavoured Chrome-trace JSON: names of processes and threads, a complete event per slice in µs, and arrows.
 * Slices that cross others of their thread stand on threads of their own: Perfetto drops such slices else.
 * @param {Model} model
 * @param {{begin: number, end: number, tracks: number[]}} range
 * @param {Told} told
 * @returns {{text: string, left: number}} `left` slices found no room
 */
export function chromeEvents(model, { begin, end, tracks }, told) {
  /** @type {object[]} */
  const events = [];
  const places = new Map();
  const own = [];
  let left = 0;
  for (const number of tracks) {
    const track = model.tracks[number];
    const slices = overlapping(model, track, begin, end);
    const kept = slices.subarray(0, Math.max(0, MOST_EVENTS - events.length));
    left += slices.length - kept.length;
    const pid = processOf(model, track);
    const copies = nested(model, kept);
    const lanes = Array.from({ length: Math.max(0, ...copies) + 1 }, (_, at) => [pid, number * 1000 + at + 1]);
    own.push({ ...about(track), lanes });
    events.push(...names(model, track, lanes));
    kept.forEach((slice, at) => {
      const place = { pid, tid: lanes[copies[at]][1], ts: model.start[slice] / 1000 };
      places.set(slice, place);
      events.push(complete(model, track, slice, place, told));
    });
  }
  const all = [...events, ...arrows(model, places)];
  return { text: JSON.stringify({ ...root(model, tracks, own), traceEvents: all }), left };
}

/**
 * Per slice the number of the thread it stands on: the first where it nests.
 * @param {Model} model
 * @param {Int32Array} slices in order of start and falling duration
 */
function nested(model, slices) {
  /** @type {number[][]} ends of what is open on each thread */
  const open = [];
  return Array.from(slices, (slice) => {
    const [start, end] = [model.start[slice], model.start[slice] + model.dur[slice]];
    for (let at = 0; ; at += 1) {
      open[at] ??= [];
      const ends = open[at];
      while (ends.length && ends[ends.length - 1] <= start) ends.pop();
      if (ends.length && ends[ends.length - 1] < end) continue;
      ends.push(end);
      return at;
    }
  });
}

/**
 * The file's process of a track: a device's has its number, by which readers know it. Of several runs each device has
 * a number of its own.
 * @param {Model} model
 * @param {Track} track
 */
function processOf(model, track) {
  if (track.device !== null) return track.source * 1000 + track.device;
  const groups = [...new Set(model.tracks.filter((one) => one.device === null).map(processKey))];
  return 1_000_000 + groups.indexOf(processKey(track));
}

/** @param {Track} track */
function processKey({ source, group }) {
  return `${source} ${group}`;
}

/** @param {Track} track */
function about(track) {
  const { type, label, group, device, source } = track;
  const stream = /^(?:.* )?(\d{1,9})\)?$/.exec(type === 'stream' ? label : '')?.[1];
  return { kind: TRACKS[type] ?? 'other', process: group.replace(/^process /, ''), thread: label, label,
    ...(device !== null && TRACKS[type] ? { device: source * 1000 + device } : {}),
    ...(stream ? { stream: Number(stream) } : {}) };
}

/**
 * @param {Model} model
 * @param {Track} track
 * @param {number[][]} lanes
 */
function names(model, { source, group, label, number }, lanes) {
  const run = model.sources[source].label;
  const [pid, tid] = lanes[0];
  return [
    { ph: 'M', name: 'process_name', pid, tid, args: { name: `${run} ${group}`.trim() } },
    ...lanes.flatMap((lane, at) => [
      { ph: 'M', name: 'thread_name', pid, tid: lane[1], args: { name: at ? `${label} (${at + 1})` : label } },
      { ph: 'M', name: 'thread_sort_index', pid, tid: lane[1], args: { sort_index: number } }]),
  ];
}

/**
 * @param {Model} model
 * @param {Track} track
 * @param {number} slice
 * @param {{pid: number, tid: number, ts: number}} place
 * @param {Told} told
 */
function complete(model, track, slice, place, told) {
  const kind = model.kindNames[model.kinds[model.name[slice]]];
  const isOwn = kind in CATEGORIES;
  const cat = track.device !== null && ON_DEVICE.includes(kind) ? 'gpu_user_annotation' : CATEGORIES[kind] ?? kind;
  const recorded = told(slice).flatMap(({ table, name, value }) => {
    const key = ARGUMENTS[table]?.[name];
    return key ? [[key, parsed(value)]] : [];
  });
  const { device, stream } = about(track);
  const called = launched(model, slice);
  return { ph: 'X', cat, name: model.texts[model.name[slice]], ...place, dur: model.dur[slice] / 1000, args: {
    ...Object.fromEntries(recorded), 'stepscope kind': isOwn ? kind : 'other',
    ...(device === undefined ? {} : { device }), ...(stream === undefined ? {} : { stream }),
    ...(called < 0 ? {} : { correlation: called + 1 }) } };
}

/** @param {string|number} value lists as they were recorded, not their text */
function parsed(value) {
  if (typeof value !== 'string' || !/^[[{]/.test(value)) return value;
  try {
    return JSON.parse(value);
  } catch {
    return value;
  }
}

/**
 * The call that launched a slice, or the slice where it launched others; -1 for neither.
 * @param {Model} model
 * @param {number} slice
 */
function launched(model, slice) {
  const { into, out } = flowsOf(model, slice);
  const isLaunch = (/** @type {{kind: string}} */ { kind }) => kind === 'launch';
  return into.find(isLaunch)?.slice ?? (out.some(isLaunch) ? slice : -1);
}

/**
 * Arrows between slices of the file.
 * @param {Model} model
 * @param {Map<number, {pid: number, tid: number, ts: number}>} places
 */
function arrows(model, places) {
  const events = [];
  const begun = new Set();
  for (let at = 0; at < model.flowSource.length; at += 1) {
    const [source, target] = [model.flowSource[at], model.flowTarget[at]];
    const [from, to] = [places.get(source), places.get(target)];
    if (!from || !to) continue;
    const kind = model.flowKinds[model.flowKind[at]];
    const isLaunch = kind === 'launch';
    const cat = isLaunch ? 'ac2g' : kind === 'forward_backward' ? 'fwdbwd' : kind;
    const id = isLaunch ? source + 1 : at + 1;
    if (!isLaunch || !begun.has(id)) events.push({ ph: 's', cat, name: cat, id, ...from });
    if (isLaunch) begun.add(id);
    events.push({ ph: 'f', bp: 'e', cat, name: cat, id, ...to });
  }
  return events;
}

/**
 * @param {Model} model
 * @param {number[]} tracks
 * @param {object[]} own
 */
function root(model, tracks, own) {
  const sources = [...new Set(tracks.map((number) => model.tracks[number].source))];
  const { header } = model.sources[sources[0] ?? 0];
  const devices = sources.flatMap((source) => model.sources[source].header.groups.flatMap(
    ({ id, about: name }) => {
      const device = /^device (\d+)$/.exec(id)?.[1];
      return device ? [{ id: source * 1000 + Number(device), ...(name ? { name } : {}) }] : [];
    }));
  const rank = sources.length === 1 ? header.rank ?? null : null;
  return { schemaVersion: 1, displayTimeUnit: 'ns', ...(devices.length ? { deviceProperties: devices } : {}),
    ...(rank === null ? {} : { distributedInfo: { rank } }),
    stepscope: { tracks: own, framework: header.framework } };
}
