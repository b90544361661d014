/** How batches are made, and how long the device or the training thread waits for them. */

import { h } from '../core/dom.js';
import { prose } from '../core/text.js';
import { NOT_RECORDED, formatCount, formatNs, formatShare } from '../core/units.js';
import { named, ns, number, share, word } from '../widgets/columns.js';
import { deviceBars } from '../widgets/devices.js';
import { missing, panel } from '../widgets/panel.js';
import { related, tiles } from '../widgets/related.js';
import { OF_STEPS } from '../widgets/scope.js';
import { chosenTime } from '../widgets/steps.js';
import { table } from '../widgets/table.js';
import { hasOverRanks, overRanks } from './over_ranks.js';

/** @typedef {import('../core/types.js').Context} Context */
/** @typedef {import('../core/document.js').InputPipeline} InputPipeline */

const WAITS = ['input', 'infeed'];

/** @type {import('../core/types.js').Page} */
export const input = { id: 'input', key: 'i', title: 'Input', render, ofSteps: true,
  ofJob: (context) => overRanks(context, 'input'),
  has: (report) => (report.analyses.ranks ? hasOverRanks(report, 'input')
    : loads(report.analyses.input) || Boolean(report.summary.parts_ns_per_step.input)) };

/** Whether anything was loaded: copies to the device alone are no pipeline. @param {InputPipeline|undefined} loaded */
function loads(loaded) {
  return Boolean(loaded && (loaded.wait_ns_per_step || loaded.producers || loaded.iterators || loaded.queues?.length
    || loaded.stages.some(({ side }) => side !== 'device')));
}

/** @param {Context} context */
function render(context) {
  const { report, words } = context;
  const loaded = loads(report.analyses.input) ? report.analyses.input : undefined;
  const waited = WAITS.some((category) => report.summary.parts_ns_per_step[category]);
  return h(
    'div',
    { class: 'page' },
    loaded || waited ? null : panel('Input', null, missing('No loading of input data was recorded.',
      prose(words.missing.input))),
    loaded || waited ? figures(context, loaded) : null,
    deviceBars(context, 'input', { title: 'Waiting for input in each step', only: WAITS }),
    loaded ? stages(loaded, words.input_note) : null,
    loaded && !loaded.producers ? panel('Threads that prepare batches', null,
      missing('What they do was not recorded.', prose(words.missing.input))) : null,
    iterators(loaded),
    queues(loaded),
    related(context, 'input'),
  );
}

/** @param {Context} context @param {InputPipeline|undefined} loaded */
function figures(context, loaded) {
  const producers = loaded?.producers;
  return tiles([
    ...waiting(context),
    loaded && ['in the loader', formatNs(loaded.wait_ns_per_step),
      loaded.taken_on ? `per step on the thread ${loaded.taken_on}` : 'per step on the main thread'],
    loaded && (producers
      ? ['threads that prepare batches', formatCount(producers.threads), `busy ${formatShare(producers.busy_share)}`]
      : ['threads that prepare batches', { untold: NOT_RECORDED }]),
    producers?.heaviest_stage && ['heaviest stage', producers.heaviest_stage],
    producers?.feeds_devices && ['they feed', producers.feeds_devices.toFixed(1), 'devices like this, at that rate'],
  ]);
}

/**
 * The waits per step: of all steps used, or of the chosen ones.
 * @param {Context} context
 * @returns {[string, string, string, string?][]}
 */
function waiting(context) {
  const { parts_ns_per_step: parts, parts_share: shares } = context.report.summary;
  return WAITS.filter((category) => parts[category]).map((category) => {
    const label = category === 'input' ? 'waiting for input' : 'waiting for infeed';
    const chosen = context.place.steps && chosenTime(context, (one) => one === category);
    if (!chosen?.rows) {
      return [label, formatNs(parts[category]), `per step, ${formatShare(shares[category])} of the step time`];
    }
    return [label, formatNs(Math.round(chosen.ns / chosen.rows)),
      `per step, ${formatShare(chosen.ns / chosen.whole_ns)} of ${context.scope()}`, OF_STEPS];
  });
}

/** @param {InputPipeline} loaded @param {string} note */
function stages(loaded, note) {
  if (!loaded.stages.length) return null;
  const most = Math.max(...loaded.stages.map((stage) => stage.ns_per_step));
  return panel('Stages of the pipeline', { note }, table({
    label: 'Stages',
    rows: loaded.stages,
    columns: [
      named('stage', (row) => row.name),
      word('by', (row) => row.side),
      {
        title: 'per step',
        value: (row) => row.ns_per_step,
        numeric: true,
        show: (row) => h('span', { class: 'share wide' },
          h('i', { style: { width: `${(row.ns_per_step / most) * 100}%` } }), formatNs(row.ns_per_step)),
      },
      share('device works meanwhile', (row) => row.overlap_share),
    ],
  }));
}

/** @param {InputPipeline|undefined} loaded */
function iterators(loaded) {
  if (!loaded?.iterators?.each.length) return null;
  return panel('tf.data pipeline by iterator', { note: 'own wait: its own part of the time in which a batch is waited '
    + 'for' }, table({
    label: 'Iterators',
    rows: loaded.iterators.each,
    columns: [
      named('iterator', (row) => row.path.join('::')),
      word('dataset', (row) => row.dataset),
      number('calls per step', (row) => row.calls_per_step),
      ns('per step', (row) => row.ns_per_step),
      ns('own wait', (row) => row.own_wait_ns_per_step),
      number('calls at once', (row) => row.parallelism),
      number('buffer', (row) => row.buffer_limit),
    ],
  }));
}

/** @param {InputPipeline|undefined} loaded */
function queues(loaded) {
  if (!loaded?.queues?.length) return null;
  return panel('Fill of queues', { note: 'from the summaries beside the profile' }, table({
    label: 'Fill of queues',
    rows: loaded.queues,
    columns: [
      named('queue', (row) => row.name),
      number('readings', (row) => row.readings),
      share('mean fill', (row) => row.mean),
      share('least', (row) => row.least),
    ],
  }));
}
