/** Memory in use over time, at its peak, and what of it grows. */

import { h } from '../core/dom.js';
import { prose, visible } from '../core/text.js';
import { formatBytes, formatCount, formatNs, formatShare } from '../core/units.js';
import { lastAt, stackedArea } from '../widgets/area.js';
import { named, ns, number, size, where, word } from '../widgets/columns.js';
import { charted, missing, panel } from '../widgets/panel.js';
import { known, related, tiles } from '../widgets/related.js';
import { OF_STEPS } from '../widgets/scope.js';
import { table } from '../widgets/table.js';
import { tipLines } from '../widgets/tip.js';
import { hasOverRanks, overRanks } from './over_ranks.js';

/** @typedef {import('../core/types.js').Context} Context */
/** @typedef {import('../core/document.js').MemoryPool} MemoryPool */
/** @typedef {import('../core/document.js').MemoryTimeline} MemoryTimeline */
/** @typedef {import('../core/document.js').MemoryPlace} MemoryPlace */
/** @typedef {import('../core/document.js').ProgramUse} ProgramUse */

const ROOM_NS = 1_000_000;
/** Programs whose buffers are listed. */
const SHOWN = 3;

/** @type {import('../core/types.js').Page} */
export const memory = { id: 'memory', key: 'm', title: 'Memory', render, ofSteps: true,
  ofJob: (context) => overRanks(context, 'memory'),
  has: (report) => {
    const { memory: allocated, program_memory: compiled } = report.analyses;
    return Boolean(allocated?.pools.length || (compiled && !compiled.not_recorded)) || hasOverRanks(report, 'memory');
  } };

/** @param {Context} context */
function render(context) {
  const allocated = context.report.analyses.memory;
  if (!allocated?.pools.length) {
    return h('div', { class: 'page' }, panel('Memory', null, missing('No allocations were recorded.',
      prose(allocated?.not_recorded ?? ''))), ...programs(context), related(context, 'memory'));
  }
  const at = Math.min(Number(context.place.params.pool ?? 0) || 0, allocated.pools.length - 1);
  const pool = allocated.pools[at];
  return h(
    'div',
    { class: 'page' },
    figures(context, pool, allocated.allocator_calls),
    timeline(context, pool, choice(context, allocated.pools, at)),
    peak(context, pool),
    places('In use at the peak, by place', context, pool.peak.places),
    growth(context, pool),
    ...programs(context),
    related(context, 'memory'),
  );
}

/**
 * What compiled programs need, and what it is at the peak of each.
 * @param {Context} context
 * @returns {(HTMLElement|null)[]}
 */
function programs({ report, words }) {
  const compiled = report.analyses.program_memory;
  if (!compiled) return [];
  if (compiled.not_recorded) return [panel('Memory of compiled programs', null, missing(compiled.not_recorded))];
  /** @param {ProgramUse} one */
  const place = (one) => words.spaces[one.on_host ? 'host' : String(one.space)] ?? `memory space ${one.space}`;
  const all = table({
    label: 'Memory of compiled programs',
    rows: compiled.programs,
    columns: [
      named('program', (row) => row.module),
      word('in', place),
      size('needs at most', (row) => row.peak_bytes),
      size('padding', (row) => row.peak_bytes - row.unpadded_bytes),
      size('takes', (row) => row.allocated_bytes),
      size('parameters', (row) => row.by_use.parameter ?? 0),
      size('results', (row) => row.by_use.output ?? 0),
      size('temporaries', (row) => row.by_use.temporary ?? 0),
    ],
  });
  const note = compiled.without ? `${formatCount(compiled.without)} programs do not say it` : null;
  return [panel('Memory of compiled programs', note === null ? null : { note }, all),
    ...compiled.programs.filter((one) => one.buffers.length).slice(0, SHOWN)
      .map((one) => buffers(one, place(one), compiled.ways, words))];
}

/**
 * @param {ProgramUse} program
 * @param {string} place
 * @param {Record<string, string>} ways
 * @param {Context['words']} words
 */
function buffers(program, place, ways, words) {
  const title = `In ${place} when ${visible(program.module)} needs most of it`;
  const used = Object.keys(ways).filter((way) => program.buffers.some((one) => one.way === way));
  return panel(title, null, table({
    label: title,
    rows: program.buffers,
    columns: [
      named('buffer', (row) => row.name),
      word('is', (row) => words.uses[row.use] ?? row.use),
      word('shape', (row) => row.shape),
      size('bytes', (row) => row.bytes),
      size('padding', (row) => row.bytes - row.unpadded_bytes),
      named('lives at least until', (row) => row.until),
      size('needed without it', (row) => row.peak_without_bytes),
      word('way', (row) => row.way),
      named('donated by', (row) => row.donor),
      named('from', (row) => row.source ?? row.scope),
    ],
  }), ...used.map((way) => h('p', null, prose(ways[way]))));
}

/** @param {MemoryPool} pool */
function poolName(pool) {
  const at = pool.device === null ? 'the host' : `device ${pool.device}`;
  return visible(pool.allocator === null ? at : `${at} (${pool.allocator})`);
}

/** @param {Context} context @param {MemoryPool[]} pools @param {number} at */
function choice(context, pools, at) {
  if (pools.length < 2) return [];
  const select = h('select', { 'aria-label': 'Memory of', onchange: () => {
    context.go('memory', { pool: String(select.selectedIndex) });
  } }, pools.map((pool, index) => h('option', { selected: index === at }, poolName(pool))));
  return [select];
}

/** @param {Context} context @param {MemoryPool} pool @param {import('../core/document.js').AllocatorCall|null} calls */
function figures({ words }, pool, calls) {
  const { peak: most, fragmentation: unused, growth: grown, headroom: room } = pool;
  const step = words.steps[String(most.step)];
  return tiles([
    ['most in use', `${pool.basis === 'at_least' ? '≥ ' : ''}${formatBytes(most.allocated_bytes)}`,
      `at ${formatNs(most.time_ns)}${step ? `, step ${step}` : ''}`],
    ['held by the allocator', known(pool.reserved_bytes, formatBytes)],
    unused ? ['unused of it at the peak', formatShare(unused.share),
      `${formatBytes(unused.free_bytes)}; took more beside it ${formatCount(unused.taken_beside_free)} times`] : null,
    most.fragmentation === null ? null : ['free in pieces', formatShare(most.fragmentation),
      'of what is free, outside of its largest piece'],
    room ? [room.of_allocator ? 'free of its limit' : 'free on the device', formatBytes(room.free_bytes),
      `of ${formatBytes(room.capacity_bytes)}`] : null,
    room?.batch_factor ? ['room for a batch', `${room.batch_factor.toPrecision(3)} ×`, 'as large, at most'] : null,
    grown ? ['growth per step', formatBytes(grown.mean_bytes), grown.grows ? 'in every step' : 'mean'] : null,
    calls && ['calls to the driver', `${calls.taken} + ${calls.freed}`, `take and give, ${formatNs(calls.dur_ns)}`],
  ]);
}

/** @param {Context} context @param {MemoryPool} pool @param {Node[]} actions */
function timeline(context, pool, actions) {
  const { time_ns: most } = pool.peak;
  const course = within(context, pool.timeline);
  const times = course.time_ns;
  const { series, lines } = drawnOf(context, course);
  const pairs = (/** @type {number} */ at) => [
    { label: 'in use', value: formatBytes(course.allocated_bytes[at]) },
    ...series.filter((one) => one.values[at]).map((one) => ({
      label: one.name, value: formatBytes(one.values[at]), swatch: one.swatch,
    })),
    ...lines.map((one) => ({ label: one.name, value: formatBytes(one.values[at]) })),
  ];
  const open = (/** @type {number} */ time) => context.go('trace', {
    start: String(time - ROOM_NS), end: String(time + ROOM_NS),
  });
  const chart = () => h('div', null, stackedArea({
    label: `Memory of ${poolName(pool)}`,
    times,
    series,
    lines,
    mark: most >= times[0] && most <= times[times.length - 1] ? most : null,
    format: formatBytes,
    formatTime: formatNs,
    tell: (at) => tipLines(formatNs(times[at]), pairs(at)),
    say: (at) => context.announce(`${formatNs(times[at])}: ${pairs(at)
      .map((one) => `${one.label} ${one.value}`).join(', ')}`),
    open: (at) => open(times[at]),
  }), legend(series, lines.length > 0));
  const asTable = () => table({
    label: 'Memory over time',
    rows: times.map((time, at) => ({ time, at })),
    columns: [
      ns('time', (row) => row.time),
      size('in use', (row) => course.allocated_bytes[row.at]),
      ...[...series, ...lines].map((one) => size(one.name, (/** @type {{at: number}} */ row) => one.values[row.at])),
    ],
    onRow: (row) => open(row.time),
    rowLabel: 'Trace',
  });
  const note = pool.basis === 'at_least' ? '≥: without what was allocated before the profile' : null;
  return charted(`Memory of ${poolName(pool)}`, { note, actions, class: OF_STEPS }, chart, asTable);
}

/**
 * What is drawn of a timeline: areas by what the bytes are for, where that is known, and a line of what is held.
 * @param {Context} context
 * @param {MemoryTimeline} course
 */
function drawnOf({ words }, course) {
  const kinds = Object.entries(course.by_category ?? {}).filter((/** @type {[string, number[]]} */ [, values]) => (
    values.some((value) => value > 0)));
  const series = kinds.length ? kinds.map(([kind, values]) => ({
    name: words.memory[kind] ?? kind, swatch: `mem-${kind}`, values,
  })) : [{ name: 'in use', swatch: 'mem-activation', values: course.allocated_bytes }];
  const lines = course.reserved_bytes
    ? [{ name: 'held', className: 'held', values: course.reserved_bytes }] : [];
  return { series, lines };
}

/** @param {{name: string, swatch: string}[]} series @param {boolean} held */
function legend(series, held) {
  return h(
    'p',
    { class: 'keys' },
    series.map((one) => h('span', null, h('i', { class: `swatch ${one.swatch}` }), one.name)),
    held ? h('span', null, h('i', { class: 'swatch held-key' }), 'held by the allocator') : null,
    h('span', null, h('i', { class: 'swatch mark-key' }), 'peak'),
  );
}

/**
 * The readings of the chosen steps, from the last one before them on.
 * @param {Context} context
 * @param {MemoryTimeline} course
 * @returns {MemoryTimeline}
 */
function within({ report, place }, course) {
  const times = course.time_ns;
  if (!place.steps || !times.length) return course;
  const [first, last] = place.steps.map((at) => report.steps[at]);
  const from = lastAt(times, first.start_ns);
  const to = Math.max(from, lastAt(times, last.start_ns + last.dur_ns));
  const of = course.by_category;
  /** @type {<T>(values: T[]) => T[]} */
  const cut = (values) => values.slice(from, to + 1);
  return { time_ns: cut(times), allocated_bytes: cut(course.allocated_bytes),
    reserved_bytes: course.reserved_bytes && cut(course.reserved_bytes),
    by_category: of && { before_profile: cut(of.before_profile), activation: cut(of.activation),
      gradient: cut(of.gradient), optimizer_state: cut(of.optimizer_state), temporary: cut(of.temporary),
      unknown: cut(of.unknown) } };
}

/** @param {Context} context @param {MemoryPool} pool */
function peak({ words }, pool) {
  const held = pool.peak.by_category;
  if (!held) return null;
  const total = pool.peak.allocated_bytes;
  const parts = Object.entries(held).filter(([, bytes]) => bytes).sort((a, b) => b[1] - a[1]);
  return panel('In use at the peak, by what it is for', null,
    h('div', { class: 'hbar', role: 'img', 'aria-label': 'Memory at the peak; the list below has the values' },
      parts.map(([kind, bytes]) => h('i', {
        class: `swatch mem-${kind}`,
        style: { 'flex-grow': String(bytes / total) },
        title: `${words.memory[kind] ?? kind}: ${formatBytes(bytes)}`,
      }))),
    h('div', { class: 'legend' }, h('table', { 'aria-label': 'Memory at the peak' }, parts.map(([kind, bytes]) => h(
      'tr',
      null,
      h('td', null, h('i', { class: `swatch mem-${kind}` }), words.memory[kind] ?? kind),
      h('td', { class: 'num' }, formatBytes(bytes)),
      h('td', { class: 'num' }, formatShare(bytes / total)),
    )))));
}

/** @param {string} title @param {Context} context @param {MemoryPlace[]} rows */
function places(title, { words }, rows) {
  if (!rows.length) return null;
  return panel(title, { note: 'what was allocated inside the profile' }, table({
    label: title,
    rows,
    columns: [
      word('what for', (row) => words.memory[row.category] ?? row.category),
      size('bytes', (row) => row.bytes),
      number('blocks', (row) => row.blocks),
      named('op', (row) => row.where?.op),
      word('type', (row) => row.dtype),
      word('shape', (row) => row.shape),
      where('allocated in', (row) => (row.where ? { ...row.where, op: null } : null)),
      named('module', (row) => row.where?.module),
    ],
  }));
}

/** @param {Context} context @param {MemoryPool} pool */
function growth(context, pool) {
  const { words } = context;
  const grown = pool.growth;
  if (!grown) return null;
  const note = grown.grows ? 'in every step, by blocks that stay' : 'at the end of a step, against the one before';
  const rows = grown.steps.map((step, at) => ({ step, bytes: grown.per_step_bytes[at] }));
  const called = (/** @type {number} */ step) => words.steps[String(step)];
  return h('div', { class: 'two' }, panel('Growth from step to step', { note, class: OF_STEPS }, table({
    label: 'Growth',
    rows: rows.filter(({ step }) => context.inSteps(step)),
    columns: [word('steps', ({ step }) => `${called(step - 1)} → ${called(step)}`), size('growth', (row) => row.bytes)],
  })), grown.places.length ? places('What grows', context, grown.places) : null);
}
