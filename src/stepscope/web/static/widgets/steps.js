/** The accounting of each step as bars, or as a table. */

import { visible } from '../core/text.js';
import { formatNs } from '../core/units.js';
import { traceParams } from './finding.js';
import { swatch } from './hbar.js';
import { charted } from './panel.js';
import { OF_STEPS } from './scope.js';
import { stackedBars } from './stacked.js';
import { table } from './table.js';
import { tipLines } from './tip.js';

/** @typedef {import('../core/types.js').Context} Context */
/** @typedef {import('../core/types.js').AccountRow} AccountRow */

/** In place of a device: the mean over all that computed. */
export const ALL = -1;

/**
 * The rows of a device's chosen steps; of a job, one rank's.
 * @param {Context} context
 * @param {number|null} device
 * @param {number|null} [rank]
 */
export function chosenRows(context, device, rank) {
  if (device === ALL) return meanRows(context);
  return context.report.accounting.filter(
    (row) => row.phase === 'step' && row.device === device && (rank === undefined || row.rank === rank)
      && context.inSteps(row.step),
  );
}

/**
 * Time of the chosen steps on the devices that worked: all of it, and that of some categories.
 * @param {Context} context
 * @param {(category: string) => boolean} counts
 */
export function chosenTime(context, counts) {
  const used = (context.report.analyses.breakdown ?? []).filter((entry) => !entry.unused);
  const rows = used.flatMap((entry) => chosenRows(context, entry.device));
  const parts = rows.flatMap((row) => Object.entries(row.parts)).filter(([category]) => counts(category));
  return { rows: rows.length, whole_ns: sum(rows.map((row) => row.dur_ns)), ns: sum(parts.map(([, ns]) => ns)) };
}

/**
 * The parts of some rows of the accounting per row, largest first.
 * @param {AccountRow[]} rows
 */
export function meanParts(rows) {
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

/**
 * A row per step that holds the means over the devices that computed.
 * @param {Context} context
 * @returns {AccountRow[]}
 */
function meanRows(context) {
  const used = (context.report.analyses.breakdown ?? []).filter((entry) => !entry.unused);
  const rows = used.map((entry) => chosenRows(context, entry.device));
  return rows[0].map((first) => {
    const same = rows.flatMap((of) => of.find((one) => one.step === first.step) ?? []);
    const parts = Object.fromEntries(meanParts(same).map((part) => [part.category, part.ns_per_step]));
    return { ...first, device: ALL, dur_ns: sum(Object.values(parts)), parts };
  });
}

/** @param {number[]} values */
export function sum(values) {
  return values.reduce((total, value) => total + value, 0);
}

/** @param {Context} context @param {number|null} device */
export function deviceName({ report }, device) {
  if (device === null) return 'host';
  if (device === ALL) return 'mean of all devices';
  const named = report.profile.devices.find((one) => one.id === device)?.name;
  return visible(named ? `device ${device}, ${named}` : `device ${device}`);
}

/**
 * A bar per step; of all categories, or of some. Null where there are not two steps to compare.
 * @param {Context} context
 * @param {{title: string, note: string, device: number|null, rank?: number|null, only?: string[],
 *   actions?: Node[]}} given
 */
export function stepBars(context, given) {
  const { words } = context;
  const rows = chosenRows(context, given.device, given.rank);
  const present = new Set(rows.flatMap((row) => Object.keys(row.parts)));
  const shown = Object.keys(words.categories)
    .filter((category) => present.has(category) && (given.only?.includes(category) ?? true))
    .sort((a, b) => Number(words.categories[b].busy) - Number(words.categories[a].busy));
  if (rows.length < 2 || !shown.length) return null;
  const { title, note, actions } = given;
  return charted(title, { note, class: OF_STEPS, actions }, () => chart(context, given, rows, shown),
    () => stepTable(context, rows, shown));
}

/**
 * @param {Context} context
 * @param {{title: string, device: number|null}} given
 * @param {AccountRow[]} rows
 * @param {string[]} shown categories
 */
function chart(context, given, rows, shown) {
  const { words, report } = context;
  const marks = new Map(report.steps.map((step) => [step.index, !step.complete || step.slow]));
  const heading = (/** @type {AccountRow} */ row) => `Step ${stepName(context, row)}: ${formatNs(row.dur_ns)}`;
  const told = (/** @type {AccountRow} */ row) => shown.filter((category) => row.parts[category]);
  return stackedBars({
    label: `${given.title}, ${deviceName(context, given.device)}`,
    series: shown.map((category) => ({
      name: words.categories[category].words,
      swatch: `cat-${category}`,
      waits: !words.categories[category].busy,
    })),
    bars: rows.map((row) => ({
      label: stepName(context, row),
      parts: shown.map((category) => row.parts[category] ?? 0),
      marked: marks.get(row.step ?? -1) ?? false,
    })),
    format: formatNs,
    tell: (at) => tipLines(heading(rows[at]), told(rows[at]).map((category) => ({
      label: words.categories[category].words,
      value: formatNs(rows[at].parts[category]),
      swatch: swatch(category, words.categories[category].busy),
    }))),
    say: (at) => context.announce(`${heading(rows[at])}; ${told(rows[at])
      .map((category) => `${words.categories[category].words} ${formatNs(rows[at].parts[category])}`).join(', ')}`),
    ...(context.hasTrace(rows[0].rank) ? {
      open: (/** @type {number} */ at) =>
        context.trace(rows[at].rank, traceParams(rows[at].start_ns, rows[at].dur_ns, null)),
    } : {}),
  });
}

/** @param {Context} context @param {AccountRow} row */
function stepName({ words }, row) {
  return words.steps[String(row.step)] ?? String(row.step);
}

/**
 * @param {Context} context
 * @param {AccountRow[]} rows
 * @param {string[]} shown
 */
function stepTable(context, rows, shown) {
  return table({
    label: 'Time of each step',
    rows,
    columns: [
      { title: 'step', value: (row) => Number(stepName(context, row)), numeric: true },
      { title: 'start', value: (row) => row.start_ns, show: (row) => formatNs(row.start_ns), numeric: true },
      { title: 'time', value: (row) => row.dur_ns, show: (row) => formatNs(row.dur_ns), numeric: true },
      ...shown.map((category) => ({
        title: context.words.categories[category].words,
        value: (/** @type {AccountRow} */ row) => row.parts[category] ?? 0,
        show: (/** @type {AccountRow} */ row) => formatNs(row.parts[category] ?? 0),
        numeric: true,
      })),
    ],
    ...(context.hasTrace(rows[0].rank) ? {
      onRow: (/** @type {AccountRow} */ row) =>
        context.trace(row.rank, traceParams(row.start_ns, row.dur_ns, null)),
    } : {}),
    rowLabel: 'Trace',
  });
}
