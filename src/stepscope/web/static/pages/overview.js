/** What the step time is made of, what to change, and what was recorded. */

import { h } from '../core/dom.js';
import { prose, visible } from '../core/text.js';
import { ABSENT, NOT_RECORDED, formatBytes, formatNs, formatShare } from '../core/units.js';
import { number, share, word } from '../widgets/columns.js';
import { answer } from '../widgets/answer.js';
import { findingCard } from '../widgets/finding.js';
import { compared } from '../widgets/compared.js';
import { overDevices } from '../widgets/devices.js';
import { hbar } from '../widgets/hbar.js';
import { hostIn } from '../widgets/host_in.js';
import { NOT_DETERMINED } from '../widgets/lanes.js';
import { missing, panel } from '../widgets/panel.js';
import { tiles } from '../widgets/related.js';
import { OF_STEPS } from '../widgets/scope.js';
import { ALL, chosenRows, chosenTime, deviceName, meanParts, stepBars, sum } from '../widgets/steps.js';
import { table } from '../widgets/table.js';

/** @typedef {import('../core/types.js').Context} Context */
/** @typedef {import('../core/types.js').AccountRow} AccountRow */
/** @typedef {import('../core/types.js').Page} Page */
/** @typedef {import('../widgets/related.js').Told} Told */

const OPEN_FINDINGS = 1;
const FILES = 16;
const LAUNCHING = ['launch', 'launch_latency'];

/** @type {Page} */
export const overview = { id: 'overview', key: 'o', title: 'Overview', render, ofSteps: true };

/** @param {Context} context */
function render(context) {
  const { words } = context;
  const [first, ...more] = told(context);
  return h(
    'div',
    { class: 'page overview' },
    words.damage ? h('p', { class: 'damage', role: 'alert' }, words.damage) : null,
    verdict(context),
    first ? answer(first, context) : h('section', { class: 'panel', 'aria-label': 'What to change' },
      h('p', { class: words.healthy ? 'good' : '' }, words.without_findings ?? ''),
      words.healthy ? null : hostIn(context)),
    ...devices(context),
    figures(context),
    words.gradients ? h('p', { class: 'dim' }, ...prose(`Reducing gradients: ${words.gradients}.`)) : null,
    more.length ? findings(context, more) : null,
    phases(context),
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
  );
}

/** @param {Context} context */
function figures(context) {
  const { report, words } = context;
  const { summary, analyses } = report;
  const limited = context.place.steps && !words.partial ? ofSteps(context) : [];
  const waited = summary.launch_wait_share;
  const pool = (analyses.memory?.pools ?? []).find((one) => !one.on_host);
  /** @type {import('../widgets/related.js').Tile[]} */
  const whole = [
    words.step_time,
    ...words.headlines.filter(([, value]) => !analyses.ranks || typeof value === 'string'),
    waited !== null && ['waiting for launches', formatShare(waited), 'of the step time'],
    ...(analyses.overlap ?? []).map((one) => /** @type {Told} */ ([`${one.what} hidden by other work`,
      formatShare(one.hidden_share), `of ${formatNs(one.ns_per_step)} per step`])),
    ...utilisation(analyses.mfu ?? []),
    analyses.ranks ? null : pool ? [
      'most memory in use',
      `${pool.basis === 'at_least' ? '≥ ' : ''}${formatBytes(pool.peak.allocated_bytes)}`,
      pool.headroom ? `${formatBytes(pool.headroom.free_bytes)} free on device` : '',
    ] : ['most memory in use', { untold: NOT_RECORDED }],
  ];
  return tiles([...limited, ...whole.filter((one) => !one || !limited.some(([label]) => label === one[0]))]);
}

/**
 * The figures that are known of each step, of the chosen ones: label, value, what it is of and its class.
 * @param {Context} context
 * @returns {[string, string, string, string][]}
 */
function ofSteps(context) {
  const { categories } = context.words;
  const busy = chosenTime(context, (category) => categories[category].busy);
  const launch = chosenTime(context, (category) => LAUNCHING.includes(category));
  const scope = context.scope();
  if (!busy.rows) return [];
  const onDevice = context.report.profile.devices.length > 0;
  return [
    ['step time', formatNs(Math.round(busy.whole_ns / busy.rows)), `mean of ${scope}`, OF_STEPS],
    ...(onDevice ? /** @type {[string, string, string, string][]} */ ([
      ['device busy', formatShare(busy.ns / busy.whole_ns), `of ${scope}`, OF_STEPS],
      ['waiting for launches', formatShare(launch.ns / busy.whole_ns), `of ${scope}`, OF_STEPS]]) : []),
  ];
}

/**
 * The utilisation of each device; where none is known, why.
 * @param {{device: number|null, share: number|null, reason: string|null}[]} entries
 * @returns {Told[]}
 */
function utilisation(entries) {
  const shares = entries.filter((one) => one.share !== null);
  if (entries.length && !shares.length) return [['MFU', { untold: NOT_DETERMINED }, entries[0].reason ?? '']];
  return /** @type {Told[]} */ (overDevices('MFU', shares.map((one) => (
    { device: one.device, value: one.share ?? 0, rest: 'of the peak' })), formatShare));
}

/** @param {Context} context */
function devices(context) {
  const { report, words } = context;
  const without = (/** @type {string} */ why) => [panel('Where each step\'s time goes', null, missing(why))];
  if (words.partial) return without('How the time divides is not known from this part.');
  const used = [...together(report), ...(report.analyses.breakdown ?? []).filter((entry) => !entry.unused)];
  if (!used.length) return without('No step was recorded whole.');
  const at = context.place.params.device;
  const entry = used.find((one) => laneOf(context, one) === at) ?? used[0];
  const several = entry.device === null && used.length > 2 && !report.analyses.ranks;
  const choice = used.length > 1 ? deviceChoice(context, used, entry) : null;
  return [mean(context, entry, choice), several ? each(context, used.slice(1)) : null,
    eachStep(context, entry, used.length > 1 && entry === used[0])];
}

/**
 * The steps of a device one by one; all ranks of a job together have none.
 * @param {Context} context
 * @param {import('../core/types.js').Breakdown} entry
 * @param {boolean} first whether it is the first of several
 */
function eachStep(context, { rank, device }, first) {
  const ofAll = rank === null && first;
  if (context.report.analyses.ranks && ofAll) return null;
  const whose = device === null ? 'host' : 'device';
  const note = `plain: the ${whose} works; hatched: it waits. A click opens the step in the trace.`;
  return stepBars(context, { title: 'Each step', note, device: ofAll ? ALL : device, rank });
}

/**
 * The mean of each device beside the others'.
 * @param {Context} context
 * @param {import('../core/types.js').Breakdown[]} entries
 */
function each(context, entries) {
  const note = 'means of its own steps; of the steps of all together, from the first to begin to the last to end, '
    + `the mean is ${formatNs(context.report.summary.step_time_ns.mean)}`;
  return panel('Where each device\'s time goes', { note }, compared(context, entries.map((one) => ({
    label: deviceName(context, one.device),
    total: one.step_ns ?? 0,
    parts: Object.fromEntries(one.parts.map((part) => [part.category, part.ns_per_step])),
  }))));
}

/**
 * The mean over the ranks of a job, or over the devices of a profile.
 * @param {import('../core/types.js').Report} report
 * @returns {import('../core/types.js').Breakdown[]}
 */
function together({ summary, analyses }) {
  const several = analyses.ranks || (analyses.breakdown ?? []).filter((entry) => !entry.unused).length > 1;
  if (!several || !summary.step_time_ns.mean) return [];
  const all = sum(Object.values(/** @type {Record<string, number>} */ (summary.parts_ns_per_step)));
  const parts = Object.entries(/** @type {Record<string, number>} */ (summary.parts_ns_per_step))
    .map(([category, ns]) => (
      { category, ns_per_step: ns, share: summary.parts_share[category], busy: true, label: category }))
    .sort((a, b) => b.ns_per_step - a.ns_per_step);
  return [{ rank: null, device: null, basis: summary.step_basis ?? 'host', steps: summary.steps_used, unused: false,
    step_ns: analyses.ranks ? summary.step_time_ns.mean : all, parts }];
}

/** @param {Context} context @param {import('../core/types.js').Breakdown} entry */
function laneOf({ report }, { rank, device }) {
  return report.analyses.ranks ? `${rank ?? 'all'}.${device ?? -1}` : String(device ?? ALL);
}

/** @param {Context} context @param {import('../core/types.js').Breakdown} entry */
function laneName(context, { rank, device }) {
  const { analyses } = context.report;
  const count = (analyses.breakdown ?? []).filter((one) => !one.unused).length;
  if (!analyses.ranks) return device === null && count > 1 ? `mean of ${count} devices` : deviceName(context, device);
  return rank === null ? 'mean of all ranks' : `rank ${rank}, ${deviceName(context, device)}`;
}

/**
 * @param {Context} context
 * @param {import('../core/types.js').Breakdown[]} used
 * @param {import('../core/types.js').Breakdown} entry
 */
function deviceChoice(context, used, entry) {
  const choose = h('select', { 'aria-label': 'Device', onchange: () => {
    context.go('overview', { ...context.place.params, device: choose.value });
  } }, used.map((one) => h('option', { value: laneOf(context, one), selected: one === entry },
    laneName(context, one))));
  return choose;
}

/**
 * @param {Context} context
 * @param {import('../core/types.js').Breakdown} entry
 * @param {HTMLElement|null} choice
 */
function mean(context, entry, choice) {
  const { report, words } = context;
  const several = report.analyses.ranks === undefined && laneName(context, entry).startsWith('mean of');
  const { parts, length } = meanOf(context, entry, several ? ALL : entry.device);
  const note = `${length}${ofLaunches(context, parts)}`;
  const named = report.profile.devices.length > 1 || entry.device === null;
  const where = named ? ` (${laneName(context, entry)})` : '';
  return panel(
    `Where ${words.untimed ? "the profile's" : "each step's"} time goes${where}`,
    { note, actions: choice ? [choice] : [], class: OF_STEPS },
    hbar(context, words.untimed ? 'Profile' : 'Mean step', several ? { device: ALL } : entry, parts.map((part) => (
      { category: part.category, ns: part.ns_per_step, share: part.share }))),
  );
}

/**
 * The mean of all steps, or of the chosen ones: its parts, and how long it is in words.
 * @param {Context} context
 * @param {import('../core/types.js').Breakdown} entry
 * @param {number|null} device
 */
function meanOf(context, entry, device) {
  const unit = context.words.untimed ? 'in all' : 'per step';
  const of = (/** @type {number} */ count) => (count > 1 ? `, mean of ${count} steps` : '');
  if (context.place.steps === null) {
    return { parts: entry.parts, length: `${formatNs(entry.step_ns)} ${unit}${of(entry.steps)}` };
  }
  const rows = chosenRows(context, device, entry.rank);
  const per = Math.round(sum(rows.map((row) => row.dur_ns)) / Math.max(1, rows.length));
  return { parts: meanParts(rows), length: `${formatNs(per)} ${unit}${of(rows.length)}: ${context.scope()}` };
}

/**
 * What of a bar is told together elsewhere: the wait for launches has two parts.
 * @param {Context} context
 * @param {{category: string, share: number}[]} parts
 */
function ofLaunches({ words }, parts) {
  const launching = parts.filter(({ category, share: of }) => LAUNCHING.includes(category) && of > 0);
  if (launching.length < 2) return '';
  const names = launching.map(({ category }) => words.categories[category].words).join(' and ');
  return `; ${names} together, the wait for launches, ${formatShare(sum(launching.map(({ share: of }) => of)))}`;
}

/** @param {Context} context */
function phases({ report, words }) {
  const listed = Object.entries(/** @type {Record<string, number>} */ (report.summary.phases_ns_per_step ?? {}))
    .filter(([, ns_]) => ns_).map(([phase, ns_]) => ({ phase: words.phases[phase] ?? phase, ns: ns_ }));
  if (!listed.length) return null;
  const all = sum(listed.map((one) => one.ns));
  const note = `per step, by what each op was launched from; shares of the ${formatNs(all)} of all phases`;
  return panel('Device time by phase', { note }, table({
    label: 'Device time by phase',
    rows: listed,
    columns: [word('phase', (row) => row.phase), number('per step', (row) => row.ns, formatNs),
      share('share', (row) => row.ns / all)],
  }));
}

/** @param {Context} context */
function told({ report, words }) {
  return words.told.flatMap((id) => report.findings.find((one) => one.id === id) ?? []);
}

/**
 * What comes behind the first.
 * @param {Context} context
 * @param {import('../core/types.js').Finding[]} more
 */
function findings(context, more) {
  const { words } = context;
  return panel('What to change next', { note: words.plan || null, class: 'findings' },
    ...more.map((finding, at) => findingCard(at + 2, finding, context, at < OPEN_FINDINGS)));
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
  const times = new Map();
  for (const text of words.notices) times.set(text, (times.get(text) ?? 0) + 1);
  return panel('Notices', null, h('ul', { class: 'plain notices' }, [...times].map(([text, count]) =>
    h('li', null, ...prose(text), count > 1 ? ` (${count} times)` : null))));
}

/** @param {Context} context */
function environment({ report, words }) {
  const { profile, tool } = report;
  const hosts = (report.analyses.ranks?.per_rank ?? []).filter((row) => row.host !== null);
  const recorded = typeof profile.epoch_ns !== 'number' ? ABSENT : new Date(profile.epoch_ns / 1e6).toISOString();
  /** @type {[string, string][]} */
  const pairs = [
    ...words.files.slice(0, FILES).map((text) => /** @type {[string, string]} */ (['file', text])),
    ...(words.files.length > FILES
      ? [/** @type {[string, string]} */ (['files', `and ${words.files.length - FILES} more`])] : []),
    ['format', profile.format],
    ['framework', profile.framework ?? 'not recorded'],
    ['devices', counted(profile.devices.map((one) => one.name ?? one.kind ?? 'device')) || 'none recorded'],
    ['host', profile.host ?? (hosts.length ? 'several: Ranks has them' : 'not recorded')],
    ['recorded', recorded === ABSENT ? 'not recorded' : recorded],
    ...words.capture,
    ['read by', `${tool.name} ${tool.version}`],
  ];
  return panel('Environment and capture', null, h('dl', { class: 'pairs' }, pairs.map(([label, value]) => [
    h('dt', null, label), h('dd', null, h('bdi', null, visible(value))),
  ]).flat()));
}

/** @param {string[]} names */
function counted(names) {
  const counts = new Map();
  for (const one of names) counts.set(one, (counts.get(one) ?? 0) + 1);
  return [...counts].map(([one, count]) => (count > 1 ? `${count} × ${one}` : one)).join(', ');
}
