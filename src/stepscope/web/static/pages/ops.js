/** What ops cost, by type, by place, by layer and by shape. */

import { h } from '../core/dom.js';
import { prose } from '../core/text.js';
import { there } from '../core/types.js';
import { formatCount, formatNs, formatShare } from '../core/units.js';
import { device, named, ns, number, share, where, word, yes } from '../widgets/columns.js';
import { pickDevice } from '../widgets/devices.js';
import { searchParams } from '../widgets/finding.js';
import { flame } from '../widgets/flame.js';
import { ofAllDevices } from '../widgets/merged.js';
import { charted, missing, panel } from '../widgets/panel.js';
import { related, tiles } from '../widgets/related.js';
import { OF_STEPS } from '../widgets/scope.js';
import { table } from '../widgets/table.js';
import { programs } from './ops_programs.js';
import { hasOverRanks, overRanks } from './over_ranks.js';

/** @typedef {import('../core/types.js').Context} Context */
/** @typedef {import('../core/document.js').Layers} Layers */
/** @typedef {import('../core/document.js').OpUse} OpUse */
/** @typedef {import('../core/document.js').Layer & {layers?: number, inner?: Layer[]}} Layer */
/** @typedef {import('../core/document.js').Annotation} Annotation */
/** @typedef {keyof import('../core/document.js').AnnotationMeans} Of */


/** @type {import('../core/types.js').Page} */
export const ops = { id: 'ops', key: 'p', title: 'Ops', render, ofSteps: true,
  ofJob: (context) => overRanks(context, 'ops'),
  has: (report) => {
    const { ops: types, layers: own, functions: called, xla } = report.analyses;
    return Boolean(types || own || called || xla) || hasOverRanks(report, 'ops');
  } };

/** @param {Context} context */
function render(context) {
  const { analyses } = context.report;
  const some = analyses.ops || analyses.layers || analyses.annotations || analyses.functions;
  return h(
    'div',
    { class: 'page' },
    some ? null : panel('Ops', null, missing('No ops were recorded.', prose(context.words.missing.ops))),
    placement(context),
    analyses.layers?.length ? layers(context, analyses.layers) : null,
    analyses.ops && !analyses.layers?.length ? noLayers(context) : null,
    annotations(context),
    analyses.ops ? byType(context) : null,
    analyses.ops ? byPlace(context) : null,
    byShape(context),
    ...programs(context),
    compilations(context),
    functions(context),
    related(context, 'ops'),
  );
}

/** @param {Context} context */
function noLayers({ words }) {
  return panel('Layers', null, missing('No layers of the model were recorded.', prose(words.missing.layers)));
}

/** @param {Context} context */
function placement({ report }) {
  const placed = report.analyses.placement;
  const shares = report.summary.device_ops_share;
  if (!placed) return null;
  return tiles([
    shares.by_time !== null && ['time of ops on the device', formatShare(shares.by_time)],
    shares.by_count !== null && ['ops on the device', formatShare(shares.by_count), 'by count'],
    (placed.device_ops || report.profile.devices.length) && [
      'compute on the device', `${formatCount(placed.device_ops)} ops`,
      `innermost ones, ${formatNs(placed.device_ns)}`],
    ['compute on the host', `${formatCount(placed.host_ops)} ops`,
      `${formatNs(placed.host_ns)}, innermost ones; not those that only allocate or view`],
  ]);
}

/** @param {Context} context @param {Layers[]} all of each device */
function layers(context, all) {
  const { device: picked, actions } = pickDevice(context, 'ops', all.map((one) => one.device), 'Device: layers');
  const costs = all.find((one) => one.device === picked) ?? all[0];
  const what = costs.device === null ? 'ops' : 'kernels';
  const many = context.report.profile.devices.length > 1 ? `, device ${costs.device}` : '';
  /** @type {Layer[]} */
  const rows = costs.alike?.map(({ whole, layers: times, each }) => ({ ...whole, layers: times, inner: each }))
    ?? costs.layers;
  const listed = rows.reduce((sum, row) => sum + (row.layers ?? 1), 0);
  const cut = listed < costs.count ? `; the ${listed} layers of ${costs.count} that cost most` : '';
  const alike = costs.alike ? '; layers that differ in their numbers alone are one row, which opens' : '';
  const [outside, total] = [costs.outside_ns_per_step, costs.total_ns_per_step].map(formatNs);
  const note = `${outside} of ${total} per step in no layer${alike}${cut}`;
  return charted(`Layers by the time of their ${what}${many}`, { note, actions }, () => flame({
    label: 'Layers, forward and backward, per step. Arrow keys move, Enter looks closer, Escape shows the whole',
    leaves: rows.map((row) => ({ path: row.path, value: row.whole_ns_per_step, times: row.layers })),
    format: (value) => `${formatNs(value)} per step`,
    announce: context.announce,
  }), () => table({
    label: 'Layers',
    rows,
    inner: (row) => row.inner ?? [],
    times: (row) => row.layers,
    columns: [
      named('layer', (row) => row.path),
      ns('forward', (row) => row.forward_ns_per_step),
      ns('backward', (row) => row.backward_ns_per_step),
      share('share', (row) => row.share),
      number(`${what} per step`, (row) => row.kernels_per_step, (value) => String(Number(value.toPrecision(4)))),
      ns('with layers inside', (row) => row.whole_ns_per_step),
    ],
  }));
}

/** The ranges that the program names, each with what it takes of the host and of devices. @param {Context} context */
function annotations(context) {
  const ranges = context.report.analyses.annotations;
  if (!ranges) return null;
  const { host_ns: host, device_ns: busy, idle_ns: idle } = ranges.outside.per_step;
  const none = [host !== null && `${formatNs(host)} of the main thread`,
    busy !== null && `${formatNs(busy)} of the device's work`, idle !== null && `${formatNs(idle)} of its idle time`];
  const listed = ranges.annotations.length;
  const cut = listed < ranges.count ? `; the ${listed} of ${ranges.count} with most time on the host` : '';
  const mean = ranges.devices > 1 ? `; means of ${ranges.devices} devices` : '';
  const of = idle === null ? ''
    : '; device: works on what was launched inside; idle: the device, while the host was inside';
  const per = (/** @type {'whole'|'own'} */ part, /** @type {Of} */ key) => (/** @type {Annotation} */ row) => (
    row[part].per_step[key]);
  const two = (/** @type {string} */ title, /** @type {Of} */ key) => [
    ns(title, per('whole', key)), ns(`${title}, own`, per('own', key))];
  return panel('Annotations', {
    note: `per step${of}; own: in no annotation further inside; in none: ${
      none.filter(Boolean).join(', ')}${mean}${cut}`,
  }, table({
    label: 'Annotations',
    rows: ranges.annotations,
    columns: [
      named('annotation', (row) => row.name),
      number('count', (row) => row.per_step, (value) => String(Number(value.toPrecision(4)))),
      ...two('host', 'host_ns'),
      ...(busy === null ? [] : two('device', 'device_ns')),
      ...(idle === null ? [] : two('idle', 'idle_ns')),
    ],
    onRow: (row) => context.go('trace', searchParams(context, row.name)),
    rowLabel: 'Trace',
  }));
}

/** The columns that ops of a type and of a place share. */
const TIMES = [
  number('count', (row) => row.count),
  ns('total', (row) => row.total_ns),
  ns('mean', (row) => row.mean_ns),
  ns('own', (row) => row.self_ns),
  ns('on device', (row) => (row.device_ops ? row.device_self_ns : null)),
];

/** @param {Context} context */
function byType(context) {
  const tables = there(context.report.analyses.ops);
  const side = context.place.params.side ?? '';
  const rows = tables.by_type.filter((row) => !side || row.side === side);
  const sides = [...new Set(tables.by_type.map((row) => row.side))];
  const choice = h('select', { 'aria-label': 'Where ops ran', onchange: () => {
    context.go('ops', { ...context.place.params, side: choice.value });
  } }, h('option', { value: '' }, 'host and device'), sides.map((one) =>
    h('option', { value: String(one), selected: one === side }, `on the ${one}`)));
  const tiny = tables.launch_cost_ns === null ? ''
    : `; tiny: takes no longer on the device than a launch costs here (${formatNs(tables.launch_cost_ns)})`;
  const note = `${count(tables.by_type.length, tables.types)}${tiny}`;
  return panel('Ops by type', { note, actions: [choice] }, table({
    label: 'Ops by type',
    rows,
    filter: context.place.params.name,
    columns: [
      named('op', (row) => row.op),
      word('side', (row) => row.side),
      ...TIMES,
      share('of device time', (row) => (row.device_ops ? row.device_self_ns / (tables.device_ns || 1) : null)),
      share('own, of its side', (row) => row.share),
      yes('tiny', (row) => row.launch_sized),
    ],
    onRow: (row) => context.go('trace', searchParams(context, row.op)),
    rowLabel: 'Trace',
  }));
}

/** @param {Context} context */
function byPlace(context) {
  const tables = there(context.report.analyses.ops);
  return panel('Ops by place', { note: count(tables.by_place.length, tables.places) }, table({
    label: 'Ops by place',
    rows: tables.by_place,
    columns: [
      named('op', (row) => row.name ?? row.op),
      ...TIMES,
      where('where', (row) => row.where),
      named('module', (row) => row.where?.module),
      named('function', (row) => row.where?.function),
    ],
    onRow: (row) => context.go('trace', searchParams(context, row.name ?? row.op)),
    rowLabel: 'Trace',
  }));
}

/** @param {number} shown @param {number} all */
function count(shown, all) {
  return `in the steps used; ${shown < all ? `the ${shown} that cost most of ${all}` : `all ${all}`}`;
}

/** @param {Context} context */
function byShape({ report }) {
  const rows = (report.analyses.roofline?.ops ?? []).filter((row) => row.dims !== null);
  if (!rows.length) return null;
  const merged = ofAllDevices(rows, (row) => [row.op, row.dims, row.kernel]);
  const opens = merged.length < rows.length ? '; an op of several devices is one row, which opens' : '';
  const note = `those whose work is known; Kernels has them under the roofline${opens}`;
  return panel('Ops by shape', { note }, table({
    label: 'Ops by shape',
    rows: merged,
    inner: (row) => row.inner ?? [],
    columns: [
      named('op', (row) => row.op),
      named('shapes', (row) => row.dims),
      ...device(report),
      ns('time', (row) => row.total_ns),
      number('count', (row) => row.count),
      named('kernel', (row) => row.kernel),
    ],
  }));
}

/** @param {Context} context */
function compilations(context) {
  const xla = context.report.analyses.xla;
  const rows = (xla?.compilations ?? []).filter((row) => context.inSteps(row.step));
  if (!rows.length) return null;
  return panel('Compilations inside the profile', { note: context.scope(), class: OF_STEPS }, table({
    label: 'Compilations',
    rows,
    columns: [
      word('step', (row) => context.words.steps[String(row.step)] ?? null),
      ns('at', (row) => row.start_ns),
      ns('time', (row) => row.dur_ns),
      named('module', (row) => row.module),
      named('parameters', (row) => row.changed ?? row.parameters),
      yes('compiled again', (row) => row.again),
      where('where', (row) => row.where),
    ],
  }));
}

/** @param {Context} context */
function functions({ report }) {
  const rows = report.analyses.functions;
  if (!rows) return null;
  return panel('Functions by the time spent in their own code', null, table({
    label: 'Functions',
    rows,
    columns: [named('function', (row) => row.name), ns('own time', (row) => row.self_ns),
      number('calls', (row) => row.count)],
  }));
}
