/** What may stand beside a run in the trace viewer, and what brings their times together. */

import { visible } from '../core/text.js';
import { there } from '../core/types.js';
import { formatNs, formatSigned } from '../core/units.js';
import { Pack } from '../trace/pack.js';

/** @typedef {import('../core/types.js').Source} Source */
/** @typedef {import('../core/types.js').Run} Run */
/** @typedef {{runs: number[], text: string}} Choice */
/** @typedef {{job: Run|null, at: number|null, choices: Choice[]}} Offer `job` is what the run is a rank of, `at` where
 *   it stands */
/** @typedef {{rank: number, offset_ns: number|null, drift: number|null, at_ns: number|null,
 *   uncertainty_ns: number|null}} Clock */
/** @typedef {{align: 'clock'|'steps', align_step?: number, align_op?: import('../trace/align.js').ByOp|null,
 *   labels: string[],
 *   ranks: number[], moves: (import('../trace/clock.js').Move|null)[], clocks: string[],
 *   note: string}} Together `align_step`: of the first run's steps the one that begins together with the others' */

/** How many ranks are offered together: the more, the longer all are read. */
const RANKS_TOGETHER = [4, 8, 16];
/** Slices of all traces of a view together: as many as of a single one (src/stepscope/web/limits.py). */
const MOST_SLICES = 8_000_000;
/** Beyond this many, what was added to each clock is told in short. */
const CLOCKS_TOLD = 4;
const UNMOVED = 'not moved: how far its clock is off is not determined';
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
  for (const several of sets(job, others, 1)) {
    choices.push({ runs: several.map(({ run }) => run), text: `ranks ${several.map(({ rank }) => rank).join(', ')}` });
  }
  return { job, at: jobAt, choices };
}

/**
 * Ranks whose traces stand in one view, few or many, and the places that show them; none where there are not two.
 * @param {Run} job
 * @returns {{ranks: number[], rank: number, beside: string}[]}
 */
export function ranksTogether(job) {
  return sets(job, ranksOf(job), 0).map((shown) => {
    const [{ rank }, ...others] = shown;
    return { ranks: shown.map((one) => one.rank), rank, beside: others.map(({ run }) => run).join('.') };
  });
}

/**
 * Sets of ranks that are offered together, the fewest first: each holds those that stand out most.
 * @param {Run} job
 * @param {{rank: number, run: number}[]} ranks
 * @param {number} shown how many stand in the view already
 */
function sets(job, ranks, shown) {
  const order = outliersFirst(job, ranks);
  const sizes = new Set(RANKS_TOGETHER.map((count) => Math.min(count - shown, ranks.length)));
  return [...sizes].filter((size) => size > 1).map((size) => (
    order.slice(0, size).sort((a, b) => a.rank - b.rank)));
}

/** @param {Run} job */
function ranksOf(job) {
  return Object.entries(job.traces).map(([rank, run]) => ({ rank: Number(rank), run }))
    .sort((a, b) => a.rank - b.rank);
}

/**
 * Ranks that findings name, then those that steps wait for, then the others by how long they are waited for.
 * @param {Run} job
 * @param {{rank: number, run: number}[]} ranks
 */
function outliersFirst({ report }, ranks) {
  const { stragglers, per_rank: each } = there(report.analyses.ranks);
  const named = [...report.findings, ...stragglers].flatMap(({ rank }) => rank ?? []);
  /** @type {Map<number, number>} */
  const waited = new Map();
  for (const row of each) {
    waited.set(row.rank, Math.max(waited.get(row.rank) ?? 0, row.made_wait_ns_per_step ?? 0));
  }
  const places = new Map([...named.entries()].reverse().map(([at, rank]) => [rank, at]));
  const place = (/** @type {number} */ rank) => places.get(rank) ?? named.length;
  const wait = (/** @type {number} */ rank) => waited.get(rank) ?? 0;
  return [...ranks].sort((a, b) => place(a.rank) - place(b.rank) || wait(b.rank) - wait(a.rank) || a.rank - b.rank);
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
    const job = await run(before);
    return Object.values(job.traces).includes(at) ? { job, at: before } : none;
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
 * The traces of runs, read one after the other until there are as many slices as a view can hold; `left` names those
 * that are left out then.
 * @param {Source} source
 * @param {number[]} runs
 * @param {(text: string) => void} told which one is read now
 * @param {number} [most] slices
 */
export async function held(source, runs, told, most = MOST_SLICES) {
  /** @type {{at: number, run: Run, pack: ArrayBuffer|null}[]} */
  const shown = [];
  /** @type {string[]} */
  const left = [];
  let slices = 0;
  for (const [place, at] of runs.entries()) {
    const name = visible(source.titles[at]).split(':')[0];
    if (place) told(`${name} (${place + 1} of ${runs.length})`);
    const pack = left.length ? null : await source.pack(at);
    slices += pack ? new Pack(pack).slices : 0;
    if (left.length || (place && slices > most)) left.push(name);
    else shown.push({ at, run: await source.run(at), pack });
  }
  return { shown, left };
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
 * The op that a place aligns runs by, `1@5@0@device@kernel@sgemm`: null where none is told.
 * @param {string} beside
 * @returns {import('../trace/align.js').ByOp|null}
 */
export function alignedOp(beside) {
  const [, , nth = '', where, kind, ...name] = beside.split('@');
  if (!/^\d{1,9}$/.test(nth) || !kind || !name.length) return null;
  return { step: alignedStep(beside), nth: Number(nth), onHost: where === 'host', kind, name: name.join('@') };
}

/**
 * The place that aligns runs by an op; `alignedOp` gives the op back.
 * @param {string} beside
 * @param {import('../trace/align.js').ByOp} op
 */
export function besideAt(beside, { step, nth, onHost, kind, name }) {
  return [beside.split('@')[0], step, nth, onHost ? 'host' : 'device', kind, name].join('@');
}

/**
 * How the times of runs are brought to those of the first.
 * @param {Offer} offer
 * @param {{at: number, run: Run}[]} shown
 * @param {string} [beside] tells by what step or op others are aligned
 * @returns {Together}
 */
export function together({ job }, shown, beside = '') {
  if (!job) {
    const [step, by] = [alignedStep(beside), alignedOp(beside)];
    const labels = shown.map(({ run }) => visible(run.side ?? run.title));
    const note = by ? 'runs are aligned by the chosen op'
      : step ? 'the chosen steps begin together' : 'first steps begin together';
    return { align: 'steps', align_step: step, align_op: by, labels, ranks: [], moves: [], clocks: [], note };
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
  return {
    align: 'clock',
    labels: ranks.map((rank) => `rank ${rank}`),
    ranks,
    moves: [null, ...shifts],
    clocks: ['clock of the view', ...shifts.map((one) => (
      one ? `± ${formatNs(one.uncertainty_ns)}` : 'clock not aligned'))],
    note: ranks.length > CLOCKS_TOLD ? inShort(ranks, shifts) : shifts.map((one, k) => (
      `rank ${ranks[k + 1]} ${one ? words(one) : UNMOVED}`)).join('; '),
  };
}

/**
 * How exact the clocks of many ranks are together: the name of each device has its own.
 * @param {number[]} ranks the first is that of the view's clock
 * @param {(import('../trace/clock.js').Move & {uncertainty_ns: number}|null)[]} shifts of the others
 */
function inShort(ranks, shifts) {
  const known = shifts.flatMap((one) => one?.uncertainty_ns ?? []);
  const unknown = ranks.slice(1).filter((_, k) => !shifts[k]);
  return [
    known.length ? `on the clock of rank ${ranks[0]}, ± ${formatNs(Math.max(...known))} at most` : '',
    unknown.length ? `rank${unknown.length > 1 ? 's' : ''} ${unknown.join(', ')} ${UNMOVED}` : '',
  ].filter(Boolean).join('; ');
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
