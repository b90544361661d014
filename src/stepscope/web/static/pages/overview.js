/** What the step time is made of, what to change, and what was recorded. */

import { h } from '../core/dom.js';
import { prose, visible } from '../core/text.js';
import { ABSENT, formatBytes, formatNs, formatShare } from '../core/units.js';
import { findingCard, traceParams } from '../widgets/finding.js';
import { hbar, swatch } from '../widgets/hbar.js';
import { charted, missing, panel } from '../widgets/panel.js';
import { stackedBars } from '../widgets/stacked.js';
import { table } from '../widgets/table.js';
import { tipLines } from '../widgets/tip.js';

/** @typedef {import('../core/types.js').Context} Context */
/** @typedef {import('../core/types.js').AccountRow} AccountRow */
/** @typedef {import('../core/types.js').Page} Page */

const OPEN_FINDINGS = 2;

/** @type {Page} */
export const overview = { id: 'overview', key: 'o', title: 'Overview', render };

/** @param {Context} context */
function render(context) {
  const { words } = context;
  return h(
    'div',
    { class: 'page overview' },
    words.damage ? h('p', { class: 'damage', role: 'alert' }, words.damage) : null,
    verdict(context),
    figures(context),
    ...devices(context),
    findings(context),
    notDetermined(context),
    notices(context),
    environment(context),
  );
}

/** @param {Context} context */
function verdict({ report, words }) {
  return h(
    'section',
    { class: `verdict ${words.healthy ? 'healthy' : ''}`, 'aria-label': 'Verdict' },
    h('p', { class: 'sentence' }, ...prose(report.summary.verdict)),
    h('p', { class: 'dim' }, h('bdi', null, visible(words.header.join(' · ')))),
    report.findings.length ? h('p', { class: 'dim' }, words.replayed) : null,
  );
}

/** @param {Context} context */
function figures({ report, words }) {
  const { summary, analyses } = report;
  const [, time, spread] = /** @type {string[]} */ (/^([\d.]+ \S+|.*?)(?:,? (.*))?$/s.exec(words.step_time));
  const tiles = [tile('step time', time, spread ?? ''), ...words.headlines.map(([label, value]) => {
    const [first, rest] = apart(value);
    return tile(label, first, rest);
  })];
  if (summary.launch_wait_share !== null) {
    tiles.push(tile('waiting for launches', formatShare(summary.launch_wait_share), 'of the step time'));
  }
  for (const used of analyses.mfu ?? []) {
    const where = (analyses.mfu ?? []).length > 1 ? ` of device ${used.device}` : '';
    tiles.push(used.share === null ? tile(`MFU${where}`, 'not determined', used.reason ?? '')
      : tile(`MFU${where}`, formatShare(used.share), 'of the peak'));
  }
  const pool = (analyses.memory?.pools ?? []).find((/** @type {any} */ one) => !one.on_host);
  tiles.push(pool
    ? tile('most memory in use', `${pool.basis === 'at_least' ? '≥ ' : ''}${formatBytes(pool.peak.allocated_bytes)}`,
      pool.headroom ? `${formatBytes(pool.headroom.free_bytes)} free on device` : '')
    : tile('most memory in use', 'not recorded', ''));
  return h('dl', { class: 'tiles' }, tiles);
}

/**
 * The figure at the front of a text, and the rest of it.
 * @param {string} value
 */
function apart(value) {
  const found = /^([<≥\d.]+ ?%?)(.*)$/s.exec(value);
  return found ? [found[1], found[2].trim()] : [value, ''];
}

/** @param {string} label @param {string} value @param {string} rest */
function tile(label, value, rest) {
  const plain = value === 'not recorded' || value === 'not determined';
  return h('div', null, h('dt', null, label), h('dd', { class: plain ? 'absent' : '' }, value),
    rest ? h('dd', { class: 'rest' }, rest) : null);
}

/** @param {Context} context */
function devices(context) {
  const { report, words } = context;
  if (words.partial) {
    return [panel('Where each step\'s time goes', null, missing('How the time divides is not known from this part.'))];
  }
  const used = (report.analyses.breakdown ?? []).filter((entry) => !entry.unused);
  if (!used.length) {
    return [panel('Where each step\'s time goes', null, missing('No step was recorded whole.'))];
  }
  const at = Number(context.place.params.device ?? used[0].device ?? -1);
  const entry = used.find((one) => (one.device ?? -1) === at) ?? used[0];
  const choice = used.length > 1 ? deviceChoice(context, used, entry) : null;
  return [mean(context, entry, choice), perStep(context, entry)].filter((one) => one !== null);
}

/**
 * @param {Context} context
 * @param {import('../core/types.js').Breakdown[]} used
 * @param {import('../core/types.js').Breakdown} entry
 */
function deviceChoice(context, used, entry) {
  const choose = h('select', { 'aria-label': 'Device', onchange: () => {
    context.go('overview', { ...context.place.params, device: choose.value });
  } }, used.map((one) => h('option', { value: String(one.device ?? -1), selected: one === entry },
    deviceName(context, one.device))));
  return choose;
}

/** @param {Context} context @param {number|null} device */
function deviceName({ report }, device) {
  if (device === null) return 'host';
  const named = report.profile.devices.find((one) => one.id === device)?.name;
  return visible(named ? `device ${device}, ${named}` : `device ${device}`);
}

/**
 * @param {Context} context
 * @param {import('../core/types.js').Breakdown} entry
 * @param {HTMLElement|null} choice
 */
function mean(context, entry, choice) {
  const { report, words } = context;
  const rows = chosenRows(context, entry.device);
  const whole = context.place.steps === null;
  const parts = whole ? entry.parts : summed(rows);
  const per = whole ? entry.step_ns : Math.round(sum(rows.map((row) => row.dur_ns)) / Math.max(1, rows.length));
  const count = whole ? entry.steps : rows.length;
  const named = report.profile.devices.length > 1 || entry.device === null;
  const where = named ? ` (${deviceName(context, entry.device)})` : '';
  const of = count > 1 ? `, mean of ${count} steps` : '';
  const note = `${formatNs(per)} per step${of}${whole ? '' : `: ${context.scope()}`}`;
  return panel(
    `Where each step's time goes${where}`,
    { note, actions: choice ? [choice] : [] },
    hbar('Mean step', parts.map((part) => ({
      words: words.categories[part.category]?.words ?? part.category,
      swatch: swatch(part.category, words.categories[part.category]?.busy ?? true),
      busy: words.categories[part.category]?.busy ?? true,
      ns: part.ns_per_step,
      share: part.share,
    }))),
  );
}

/** @param {Context} context @param {number|null} device */
function chosenRows(context, device) {
  return context.report.accounting.filter(
    (row) => row.phase === 'step' && row.device === device && context.inSteps(row.step),
  );
}

/**
 * The parts of some rows of the accounting per row, largest first.
 * @param {AccountRow[]} rows
 */
function summed(rows) {
  /** @type {Record<string, number>} */
  const totals = {};
  for (const row of rows) {
    for (const [category, ns] of Object.entries(row.parts)) totals[category] = (totals[category] ?? 0) + ns;
  }
  const all = sum(rows.map((row) => row.dur_ns));
  return Object.entries(totals)
    .map(([category, ns]) => ({ category, ns_per_step: Math.round(ns / rows.length), share: ns / all }))
    .sort((a, b) => b.ns_per_step - a.ns_per_step);
}

/** @param {number[]} values */
function sum(values) {
  return values.reduce((total, value) => total + value, 0);
}

/**
 * @param {Context} context
 * @param {import('../core/types.js').Breakdown} entry
 */
function perStep(context, entry) {
  const { report, words } = context;
  const rows = chosenRows(context, entry.device);
  if (rows.length < 2) return null;
  const present = new Set(rows.flatMap((row) => Object.keys(row.parts)));
  const busyFirst = Object.keys(words.categories).filter((category) => present.has(category))
    .sort((a, b) => Number(words.categories[b].busy) - Number(words.categories[a].busy));
  const stepOf = (/** @type {AccountRow} */ row) => words.steps[String(row.step)] ?? String(row.step);
  const marks = new Map(report.steps.map((step) => [step.index, !step.complete || step.slow]));
  const chart = () => stackedBars({
    label: `Time of each step by what it went to, ${deviceName(context, entry.device)}`,
    series: busyFirst.map((category) => ({
      name: words.categories[category].words,
      swatch: `cat-${category}`,
      waits: !words.categories[category].busy,
    })),
    bars: rows.map((row) => ({
      label: stepOf(row),
      parts: busyFirst.map((category) => row.parts[category] ?? 0),
      marked: marks.get(row.step ?? -1) ?? false,
    })),
    format: formatNs,
    tell: (at) => tipLines(`Step ${stepOf(rows[at])}: ${formatNs(rows[at].dur_ns)}`, busyFirst
      .filter((category) => rows[at].parts[category])
      .map((category) => ({
        label: words.categories[category].words,
        value: formatNs(rows[at].parts[category]),
        swatch: swatch(category, words.categories[category].busy),
      }))),
    say: (at) => context.announce(`Step ${stepOf(rows[at])}: ${formatNs(rows[at].dur_ns)}; ${busyFirst
      .filter((category) => rows[at].parts[category])
      .map((category) => `${words.categories[category].words} ${formatNs(rows[at].parts[category])}`).join(', ')}`),
    open: (at) => context.go('trace', traceParams(rows[at].start_ns, rows[at].dur_ns, null)),
  });
  const asTable = () => table({
    label: 'Time of each step',
    rows,
    columns: [
      { title: 'step', value: (row) => Number(stepOf(row)), show: stepOf, numeric: true },
      { title: 'start', value: (row) => row.start_ns, show: (row) => formatNs(row.start_ns), numeric: true },
      { title: 'time', value: (row) => row.dur_ns, show: (row) => formatNs(row.dur_ns), numeric: true },
      ...busyFirst.map((category) => ({
        title: words.categories[category].words,
        value: (/** @type {AccountRow} */ row) => row.parts[category] ?? 0,
        show: (/** @type {AccountRow} */ row) => formatNs(row.parts[category] ?? 0),
        numeric: true,
      })),
    ],
    onRow: (row) => context.go('trace', traceParams(row.start_ns, row.dur_ns, null)),
    rowLabel: 'Trace',
  });
  const note = 'plain: the device works; hatched: it waits. A click opens the step in the trace.';
  return charted('Each step', { note }, chart, asTable);
}

/** @param {Context} context */
function findings(context) {
  const { report, words } = context;
  const told = words.told.map((id) => report.findings.find((one) => one.id === id)).filter((one) => one !== undefined);
  const content = told.length
    ? told.map((finding, at) => findingCard(at + 1, finding, context, at < OPEN_FINDINGS))
    : [h('p', { class: words.healthy ? 'good' : '' }, words.without_findings ?? '')];
  return panel('What to change', { note: words.plan || null, class: 'findings' }, ...content);
}

/** @param {Context} context */
function notDetermined({ report, words }) {
  const untold = report.findings.filter((one) => !words.told.includes(one.id));
  if (!untold.length) return null;
  return panel('Could not be told from this profile', null, h('ul', { class: 'plain' }, untold.map((one) =>
    h('li', null, ...prose(`${one.title}: ${one.not_determined}`)))));
}

/** @param {Context} context */
function notices({ words }) {
  if (!words.notices.length) return null;
  return panel('Notices', null, h('ul', { class: 'plain notices' }, words.notices.map((text) =>
    h('li', null, ...prose(text)))));
}

/** @param {Context} context */
function environment({ report, words }) {
  const { profile, tool } = report;
  const recorded = profile.epoch_ns === null ? ABSENT : new Date(profile.epoch_ns / 1e6).toISOString();
  /** @type {[string, string][]} */
  const pairs = [
    ...words.files.map((text) => /** @type {[string, string]} */ (['file', text])),
    ['format', profile.format],
    ['framework', profile.framework ?? 'not recorded'],
    ['devices', profile.devices.map((one) => one.name ?? one.kind ?? 'device').join(', ') || 'none recorded'],
    ['host', profile.host ?? 'not recorded'],
    ['recorded', recorded === ABSENT ? 'not recorded' : recorded],
    ...words.capture,
    ['read by', `${tool.name} ${tool.version}`],
  ];
  return panel('Environment and capture', null, h('dl', { class: 'pairs' }, pairs.map(([label, value]) => [
    h('dt', null, label), h('dd', null, h('bdi', null, visible(value))),
  ]).flat()));
}
