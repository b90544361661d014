/** What is known of the selected slice. */
import { copyText, h } from '../core/dom.js';
import { formatCount, formatNs, formatRate, formatShare } from '../core/units.js';
import { visible } from '../core/text.js';
import { bringTogether } from './align.js';
import { ownTime, viewTime } from './clock.js';
import { formatValue } from './units.js';

const LONGEST = 4_000;
const LONGEST_NAME = 500;

/** @typedef {import('./app.js').App} App */
/** @typedef {import('./navigate.js').Brief} Brief */
/** @typedef {import('./client.js').Answer<'info'>} Info */

/** The search for slices of a name. @param {string} name */
export function inQuery(name) {
  const text = name.slice(0, LONGEST_NAME);
  return `name${text === name ? '=' : ':'}"${text.replace(/["\\]/g, '\\$&')}"`;
}

/**
 * A button that selects a slice.
 * @param {App} app
 * @param {Brief} slice
 * @param {string} [text]
 */
export function link(app, slice, text) {
  return h('button', { type: 'button', class: 'tv-link', title: slice.name.slice(0, 500),
    onclick: () => app.select(slice, { reveal: true }) }, (text ?? slice.name).slice(0, 160));
}

/** @param {App} app */
export async function detailsTab(app) {
  const { selection } = app;
  if (!selection) {
    return app.measure ? measured(app, app.measure)
      : [h('p', { class: 'tv-dim' }, 'Nothing is selected. Click a slice or an idle gap; ? lists the keys.')];
  }
  const info = await app.ask('info', { slice: selection.slice });
  app.arrows = [
    ...info.into.map((flow) => ({ from: flow.to, to: info.about, kind: flow.kind })),
    ...info.out.map((flow) => ({ from: info.about, to: flow.to, kind: flow.kind })),
  ];
  app.emit('notes');
  return [
    h('div', { class: 'tv-columns' },
      section(heading(app, info), facts(app, info)),
      section(info.gap && gapFacts(app, info.gap)),
      section(within(app, info), ...flows(app, info), inside(info)),
      section(args(info), spreadOf(app, info), recorded(app, info.about))),
  ];
}

/** A column of the panel; none where it would be empty. @param {...(Node|null)} parts */
function section(...parts) {
  return parts.some(Boolean) ? h('section', null, parts) : null;
}

/**
 * What was measured on the ruler.
 * @param {App} app
 * @param {{begin: number, end: number}} range
 */
function measured(app, { begin, end }) {
  return [h('div', { class: 'tv-actions' }, h('strong', null, `${formatNs(end - begin)} measured`),
    h('span', { class: 'tv-dim' }, `from ${formatNs(begin - app.meta.begin)} to ${formatNs(end - app.meta.begin)}`),
    h('button', { type: 'button', onclick: () => app.selectArea({ begin, end, tracks: app.shownTracks }) },
      'What ran meanwhile, per thread'))];
}

/**
 * @param {App} app
 * @param {Info} info
 */
function heading(app, info) {
  const { about } = info;
  const page = about.kind === 'kernel' ? 'kernels' : about.kind === 'host_op' ? 'ops' : null;
  return h('div', null,
    h('h3', { class: 'tv-title', dir: 'auto' }, about.kind === 'idle' ? `idle: ${about.category}` : about.name),
    about.kind === 'unrecorded'
      ? h('p', null, 'The device was busy with work that this profile does not hold. It was not idle.') : null,
    h('div', { class: 'tv-actions' },
      h('button', { type: 'button', onclick: () => copyText(about.name) }, 'Copy name'),
      page ? h('button', { type: 'button', onclick: (/** @type {Event} */ event) => (
        app.goToPage(event.target, about.source, { page, name: about.name })) }, `Open in ${page}`) : null,
      h('button', { type: 'button', onclick: () => app.search(inQuery(about.name)) }, 'Find all'),
      app.align && h('button', { type: 'button', onclick: () => void bringTogether(app) }, 'Align the runs here')),
    findingsOf(app, about));
}

/**
 * The findings that a slice is shown for.
 * @param {App} app
 * @param {Brief} about
 */
function findingsOf(app, about) {
  const source = app.meta.sources[about.source];
  const findings = source.header.findings.filter((finding) => finding.evidence.some(
    (piece) => viewTime(source, piece.start_ns) === about.start
      && viewTime(source, piece.end_ns) === about.start + about.dur));
  return findings.map((finding) => h('p', null, 'Shown for: ', h('button', { type: 'button',
    class: 'tv-link', onclick: (/** @type {Event} */ event) => (
      app.goToPage(event.target, about.source, { page: 'overview', finding: finding.id })) }, finding.title)));
}

/**
 * @param {string} name
 * @param {(Node|string|null|undefined|false)[]} value
 * @param {string} [title]
 */
function fact(name, value, title) {
  return [h('dt', { title: title ?? null }, name.replaceAll('_', ' ')), h('dd', null, value)];
}

/**
 * @param {App} app
 * @param {Info} info
 */
function facts(app, info) {
  const { about } = info;
  const track = app.meta.tracks[about.track];
  return h('dl', null,
    fact('kind', [about.kind.replaceAll('_', ' ')]),
    about.category ? fact('booked to', [about.category]) : null,
    starts(app, about),
    fact('duration', [`${formatNs(about.dur)} (${formatCount(about.dur)} ns)`]),
    fact('track', [`${[app.sourceLabels[about.source], track.group, track.label].filter(Boolean).join(' · ')}`]),
    info.step ? fact('step', [info.step], track.device === null ? 'of the host' : 'of the device') : null,
    info.launch ? fact('launched by', [link(app, info.launch),
      ` ${formatNs(about.start - info.launch.start)} after the call began`]) : null,
    about.id >= 0 ? fact('slice', [String(about.id)], 'Its id in the tables (stepscope query)') : null);
}

/**
 * @param {App} app
 * @param {import('./gaps.js').Gap} gap
 */
function gapFacts(app, gap) {
  const total = gap.about.dur || 1;
  return h('div', { class: 'tv-gap' }, h('h4', null, 'Why the device was idle'),
    h('dl', null, gap.parts.flatMap((part) => fact(part.cause,
      [`${formatNs(part.ns)} (${formatShare(part.ns / total)})`])),
    fact('host was in', [gap.during ? link(app, gap.during) : 'not recorded']),
    fact('ended by', [gap.op ? link(app, gap.op) : 'not recorded']),
    fact('launched by', [gap.call ? link(app, gap.call) : 'not recorded']),
    gap.crosses ? fact('note', ['a step begins or ends in it']) : null),
    h('button', { type: 'button', onclick: () => app.selectArea({ begin: gap.about.start,
      end: gap.about.start + gap.about.dur, tracks: app.tracksOf(gap.about.source) }) },
    'What ran meanwhile, per thread'));
}

/**
 * @param {App} app
 * @param {Info} info
 */
function within(app, info) {
  if (!info.within.length) return null;
  return h('div', null, h('h4', null, info.launch ? 'Launched inside (stack and source)' : 'Inside (stack and source)'),
    h('ol', { class: 'tv-stack' }, info.within.slice(0, 60).map((one) => (
      h('li', null, link(app, one), h('span', { class: 'tv-dim' }, ` ${formatNs(one.dur)}`))))));
}

/**
 * @param {App} app
 * @param {Info} info
 */
function flows(app, info) {
  const labels = app.sourceLabels;
  const where = (/** @type {Brief} */ to) => (to.source === info.about.source ? '' : `${labels[to.source]} `);
  const list = (/** @type {Info['into']} */ ends, /** @type {string} */ title, /** @type {number} */ count) => (
    ends.length ? h('div', null, h('h4', null, `${title} (${formatCount(count)})`),
      h('ul', { class: 'tv-stack' }, ends.slice(0, 30).map(({ kind, to }) => (
        h('li', null, h('span', { class: 'tv-dim' }, `${kind.replaceAll('_', ' ')} ${where(to)}`),
          link(app, to)))))) : null);
  return [list(info.into, 'Arrows in', info.intoCount), list(info.out, 'Arrows out', info.outCount)];
}

/** @param {Info} info */
function inside(info) {
  if (info.parts.length < 2 || info.gap) return null;
  return h('div', null, h('h4', null, 'Self time inside'),
    h('ul', { class: 'tv-stack' }, info.parts.map((part) => (
      h('li', null, `${formatNs(part.self)}  `, h('span', { class: 'tv-dim' }, `${part.count}× `),
        part.name.slice(0, 160))))));
}

/**
 * When a slice starts: on the clock of the view, and on its profile's own where that is another one.
 * @param {App} app
 * @param {Brief} about
 */
function starts({ meta }, { start, source }) {
  const [shown, own] = [start - meta.begin, ownTime(meta.sources[source], start)];
  return [fact('start', [`${formatNs(shown)} (${formatCount(shown)} ns)`], 'From the begin of what is in this view'),
    own === shown ? [] : fact('in its profile', [`${formatCount(own)} ns`], 'Its start as tables and queries have it'),
  ].flat();
}

/** Names of arguments that say too little. */
const WORDS = /** @type {Record<string, string>} */ ({
  occupancy_pct: 'occupancy, estimated', op_kernels_ns: 'kernels of its op', flops: 'operations of its op',
  bytes_least: 'bytes its op moves, at least', registers: 'registers per thread', bandwidth: 'memory bandwidth',
  peak_flops: 'peak rate',
});

/** @param {{name: string, unit: string, value: string|number}} argument */
function valueOf({ name, unit, value }) {
  if (name === 'call_stack') return frames(String(value));
  if (typeof value === 'string') return value;
  // A kernel that runs occupies something: recorders write 0 for what they do not know.
  if (name === 'occupancy_pct' && value === 0) return 'not determined (recorded as 0)';
  return formatValue(value, unit || null);
}

/** Shown as one line each, with their shares. */
const RATES = ['flops_per_s', 'flops_share', 'bytes_per_s', 'bandwidth_share', 'doubt'];

/** @param {Info} info */
function args(info) {
  const plain = info.arguments.filter((one) => one.table !== 'cost' || !RATES.includes(one.name));
  if (info.about.id < 0) return null;
  if (!plain.length && info.about.kind !== 'kernel') {
    return h('p', { class: 'tv-dim' }, 'No arguments of this slice were recorded.');
  }
  return h('div', null, h('h4', null, 'Arguments'), h('dl', null,
    ['kernel', 'collective'].includes(info.about.kind) ? rates(info) : null,
    plain.flatMap((one) => fact(WORDS[one.name] ?? one.name, [valueOf(one)], one.doc))));
}

/**
 * What the kernel computes and moves against the device's peaks: the figures of the report's roofline.
 * @param {Info} info
 */
function rates({ arguments: all }) {
  const cost = Object.fromEntries(all.filter((one) => one.table === 'cost')
    .map((one) => [one.name, one.value]));
  const line = (/** @type {string} */ name, /** @type {string} */ rate, /** @type {string} */ unit,
    /** @type {string} */ share, /** @type {string} */ of) => fact(name, cost[rate] === undefined
    ? ['not known: the op has no shapes (record_shapes=True), or its work does not follow from them']
    : [formatRate(Number(cost[rate]), unit), cost[share] === undefined ? `; ${of} of this device is not known`
      : `, ${formatShare(Number(cost[share]))} of ${of}`]);
  return [
    ...line('FLOP rate', 'flops_per_s', 'FLOP/s', 'flops_share', 'the peak'),
    ...line('bytes rate, at least', 'bytes_per_s', 'B/s', 'bandwidth_share', 'memory bandwidth'),
    ...(cost.doubt ? fact('doubt', [String(cost.doubt)]) : []),
  ];
}

/**
 * Everything the recorded file says of the slice, where a server can be asked.
 * @param {App} app
 * @param {Brief} about
 */
function recorded(app, about) {
  if (!app.arguments || about.id < 0) return null;
  const list = h('dl');
  app.arguments([about.id], about.source).then(([written]) => list.append(
    ...Object.entries(written ?? {}).flatMap(([key, value]) => (
      fact(visible(key), [visible(typeof value === 'string' ? value : JSON.stringify(value)).slice(0, LONGEST)])))))
    .catch((error) => list.append(h('dd', null, error.message)));
  return h('div', null, h('h4', null, 'As recorded'), list);
}

/** @param {string} stack */
function frames(stack) {
  return h('ol', { class: 'tv-stack' }, stack.split(';').map((frame) => h('li', null, frame)));
}

/**
 * @param {App} app
 * @param {Info} info
 */
function spreadOf(app, info) {
  const { spread, about } = info;
  if (spread.count < 2) return null;
  const most = Math.max(...spread.bins);
  const text = `Durations from ${formatNs(spread.min)} to ${formatNs(spread.max)}`;
  return h('div', null, h('h4', null, `All ${formatCount(spread.count)} of this name${
      app.meta.sources.length > 1 ? ` in ${app.sourceLabels[about.source]}` : ''}`),
    h('div', { class: 'tv-bins', role: 'group', 'aria-label': text },
      spread.bins.map((/** @type {number} */ count, /** @type {number} */ at) => {
        const [low, high] = [spread.edges[at], spread.edges[at + 1]];
        const what = `${formatCount(count)} of ${formatNs(low)} to ${formatNs(high)}`;
        return h('button', { type: 'button', title: what, 'aria-label': `${what}: show them`, disabled: count === 0,
          class: low <= about.dur && about.dur < high ? 'tv-mine' : null,
          style: { height: `${count ? 4 + (count / most) * 36 : 0}px` },
          onclick: () => {
            app.search(`${inQuery(about.name)} dur>=${low}ns dur<${high}ns`);
            app.open('search');
          } });
      })),
    h('dl', null, fact('sum', [formatNs(spread.total)]), fact('median', [formatNs(spread.p50)]),
      fact('99 %', [formatNs(spread.p99)]), fact('largest', [formatNs(spread.max)]),
      fact('this one', [formatNs(about.dur)])),
    h('div', { class: 'tv-actions' },
      h('button', { type: 'button', onclick: () => app.go('same', -1) }, 'One before'),
      h('button', { type: 'button', onclick: () => app.go('same', 1) }, 'Next')));
}
