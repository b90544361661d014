/** What may stand beside a run in the trace viewer, and what brings their times together. */

import { visible } from '../core/text.js';
import { there } from '../core/types.js';
import { formatNs, formatSigned } from '../core/units.js';

/** @typedef {import('../core/types.js').Source} Source */
/** @typedef {import('../core/types.js').Run} Run */
/** @typedef {{runs: number[], text: string}} Choice */
/** @typedef {{job: Run|null, at: number|null, choices: Choice[]}} Offer `job` is what the run is a rank of, `at` where
 *   it stands */
/** @typedef {{rank: number, offset_ns: number|null, drift: number|null, at_ns: number|null,
 *   uncertainty_ns: number|null}} Clock */
/** @typedef {{align: 'clock'|'steps', align_step?: number, labels: string[],
 *   ranks: number[], moves: (import('../trace/clock.js').Move|null)[], clocks: string[],
 *   note: string}} Together `align_step`: of the first run's steps the one that begins together with the others' */

/** Traces of ranks that are held at once: the browser has them all in memory. */
const MOST_RANKS = 4;
const OF_RANK = /^rank \d+: /;

/**
 * What may stand beside a run: other ranks of its job, else the other runs, one at a time.
 * @param {Source} source
 * @param {number} at
 * @returns {Promise<Offer>}
 */
export async function offered(source, at) {
  const { job, at: jobAt } = await jobOf(source, at);
  if (!job) {
    const choices = source.titles.map((title, run) => ({ runs: [run], text: visible(title) }));
    return { job, at: jobAt, choices: choices.filter(({ runs }) => runs[0] !== at) };
  }
  const others = ranksOf(job).filter(({ run }) => run !== at);
  const choices = others.map(({ rank, run }) => ({ runs: [run], text: `rank ${rank}` }));
  const several = mostWaitedFor(others, MOST_RANKS - 1);
  if (several.length > 1) {
    choices.push({ runs: several.map(({ run }) => run), text: `ranks ${several.map(({ rank }) => rank).join(', ')}` });
  }
  return { job, at: jobAt, choices };
}

/**
 * Ranks whose traces stand in one view, as many as a browser holds, and the place that shows them; null where there
 * are not two.
 * @param {Run} job
 * @returns {{ranks: number[], rank: number, beside: string}|null}
 */
export function ranksTogether(job) {
  const shown = mostWaitedFor(ranksOf(job), MOST_RANKS);
  if (shown.length < 2) return null;
  const [{ rank }, ...others] = shown;
  return { ranks: shown.map((one) => one.rank), rank, beside: others.map(({ run }) => run).join('.') };
}

/** @param {Run} job */
function ranksOf(job) {
  return Object.entries(job.traces).map(([rank, run]) => ({ rank: Number(rank), run }))
    .sort((a, b) => a.rank - b.rank);
}

/**
 * Runs stand in the order in which the others wait for them.
 * @param {{rank: number, run: number}[]} ranks
 * @param {number} count
 */
function mostWaitedFor(ranks, count) {
  return [...ranks].sort((a, b) => a.run - b.run).slice(0, count).sort((a, b) => a.rank - b.rank);
}

/**
 * The job that a run is a rank of: it stands before its ranks.
 * @param {Source} source
 * @param {number} at
 */
async function jobOf({ titles, run }, at) {
  const none = { job: null, at: null };
  if (!OF_RANK.test(titles[at])) return none;
  for (let before = at - 1; before >= 0; before -= 1) {
    if (OF_RANK.test(titles[before])) continue;
    const found = await run(before);
    return Object.values(found.traces).includes(at) ? { job: found, at: before } : none;
  }
  return none;
}

/**
 * The runs that a place asks for, of those that are offered.
 * @param {Offer} offer
 * @param {string} beside
 */
export function chosen({ choices }, beside) {
  const [wanted] = beside.split('@');
  return choices.find(({ runs }) => runs.join('.') === wanted)?.runs ?? [];
}

/**
 * The step that a place aligns runs by, `1@5`: its place among those of the first run, 0 where none is told.
 * @param {string} beside
 */
export function alignedStep(beside) {
  const [, step = ''] = beside.split('@');
  return /^\d{1,6}$/.test(step) ? Number(step) : 0;
}

/**
 * How the times of runs are brought to those of the first.
 * @param {Offer} offer
 * @param {{at: number, run: Run}[]} shown
 * @param {number} [step] of the first run, by which others are aligned
 * @returns {Together}
 */
export function together({ job }, shown, step = 0) {
  if (!job) {
    const labels = shown.map(({ run }) => visible(run.side ?? run.title));
    const note = step ? 'the chosen steps begin together' : 'first steps begin together';
    return { align: 'steps', align_step: step, labels, ranks: [], moves: [], clocks: [], note };
  }
  const ranks = shown.map(({ at }) => Number(Object.entries(job.traces).find(([, run]) => run === at)?.[0]));
  const epochs = shown.map(({ run }) => run.report.profile.epoch_ns === null);
  const comparable = epochs.every((one) => one === epochs[0]);
  /** @type {Clock[]} */
  const clocks = there(job.report.analyses.ranks).clocks;
  const origins = shown.map(({ run }) => Number(run.report.profile.epoch_ns ?? 0) - Number(
    run.report.profile.epoch_ns === null ? 0 : job.report.profile.epoch_ns));
  const [first, ...others] = ranks.map((rank) => clocks.find((clock) => clock.rank === rank));
  const shifts = others.map((clock, k) => (
    comparable && first && clock ? shift(first, clock, origins[k + 1]) : null));
  const told = shifts.map((one) => (one ? words(one) : 'not moved: how far its clock is off is not determined'));
  return {
    align: 'clock',
    labels: ranks.map((rank) => `rank ${rank}`),
    ranks,
    moves: [null, ...shifts],
    clocks: ['clock of the view', ...shifts.map((one) => (
      one ? `± ${formatNs(one.uncertainty_ns)}` : 'clock not aligned'))],
    note: told.map((text, k) => `rank ${ranks[k + 1]} ${text}`).join('; '),
  };
}

/**
 * What is added to a rank's times to have those of another rank's clock, and how exact that is; null where a clock is
 * not determined. Both drift against the reference: the offset is that of the moment the rank's own was fitted for.
 * @param {Clock} first
 * @param {Clock} clock
 * @param {number} origin where the rank's times begin, as `at_ns` counts
 */
export function shift(first, clock, origin) {
  if (first.offset_ns === null || clock.offset_ns === null) return null;
  const [at, drift, own] = [Number(clock.at_ns), Number(first.drift), Number(clock.drift)];
  return {
    offset_ns: Math.round((clock.offset_ns - first.offset_ns - drift * (at - Number(first.at_ns))) / (1 + drift)),
    drift: (own - drift) / (1 + drift),
    at_ns: at - origin,
    uncertainty_ns: Number(clock.uncertainty_ns) + Number(first.uncertainty_ns),
  };
}

/** @param {{offset_ns: number, uncertainty_ns: number, drift: number}} shift */
function words({ offset_ns: offset, uncertainty_ns: uncertainty, drift }) {
  const perSecond = Math.round(drift * 1e9);
  const drifts = perSecond ? ` and ${formatSigned(perSecond)}/s of drift` : '';
  return `moved by ${formatSigned(offset)}${drifts}, ± ${formatNs(uncertainty)}`;
}
