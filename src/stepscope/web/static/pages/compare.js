/** Two runs against each other: whether the step time changed, and by what. */

import { h } from '../core/dom.js';
import { prose, visible } from '../core/text.js';
import { formatNs, formatPerStep, formatShare, formatSigned } from '../core/units.js';
import { named, ns, number, word } from '../widgets/columns.js';
import { compared } from '../widgets/compared.js';
import { dots } from '../widgets/dots.js';
import { flame } from '../widgets/flame.js';
import { charted, missing, panel } from '../widgets/panel.js';
import { known, tiles } from '../widgets/related.js';
import { table } from '../widgets/table.js';

/** @typedef {import('../core/types.js').Context} Context */
/** @typedef {import('../core/types.js').Comparison} Comparison */
/** @typedef {import('../core/document.js').ComparisonDocument} ComparisonDocument */
/** @typedef {import('../core/document.js').FindingChange} FindingChange */
/** @typedef {import('../widgets/related.js').Tile} Tile */
/** @typedef {import('../core/document.js').Difference & {told?: boolean}} Change */
/** @typedef {import('../core/document.js').ComparedItem} ComparedItem */

/** @type {import('../core/types.js').Page} */
export const compare = { id: 'compare', key: 'c', title: 'Compare', render };

const STATES = /** @type {Record<string, string>} */ ({
  gone: 'Gone', less: 'Less than before', stays: 'Still there', more: 'More than before', new: 'New',
});

/** @param {Context} context */
function render(context) {
  const { comparison } = context;
  if (!comparison) return alone(context);
  const { document: both } = comparison;
  return h(
    'div',
    { class: 'page compare' },
    context.picks ? panel('Two of the open profiles', null, picker(context)) : null,
    sentence(comparison),
    sides(comparison),
    figures(both),
    distributions(context, both),
    parts(context, both),
    work(context, both),
    python(context, both),
    items('Layers', both.layers),
    items('Kernels', both.kernels),
    items('Ops', both.ops),
    findings(comparison),
    budgets(both),
  );
}

/** @param {Context} context */
function alone(context) {
  const { run } = context;
  const what = 'A comparison needs two profiles of the same work, before and after a change: where the step time went, '
    + 'what changed, and whether it is more than noise.';
  if (context.titles.length > 1) {
    return h('div', { class: 'page' }, panel('Compare', null, missing(what), picker(context)));
  }
  const text = `This report holds ${visible(run.title)} by itself. ${what}`;
  return h('div', { class: 'page' }, panel('Compare', null, missing(text, [
    h('code', null, 'stepscope compare BEFORE AFTER --format html -o compare.html'),
    ' writes both and what changed.'])));
}

/**
 * The choice of two open profiles.
 * @param {Context} context
 */
function picker({ titles, place, go }) {
  const [before, after] = [place.params.before ?? '0', place.params.after ?? '1'].map(Number);
  const choice = (/** @type {string} */ label, /** @type {number} */ chosen) => h('select', { 'aria-label': label },
    titles.map((title, at) => h('option', { selected: at === chosen }, visible(title))));
  const [first, second] = [choice('Before', before), choice('After', after)];
  return h('div', { class: 'choices' }, h('label', null, 'before ', first), h('label', null, 'after ', second),
    h('button', { type: 'button', class: 'primary', onclick: () => go('compare',
      { before: String(first.selectedIndex), after: String(second.selectedIndex) }) }, 'Compare these'));
}

/** @param {Comparison} comparison */
function sentence({ document: both, words }) {
  const { difference_ns: difference } = both.step_time;
  const good = both.changed && difference < 0;
  return h(
    'section',
    { class: `verdict ${good ? 'healthy' : ''}`, 'aria-label': 'Comparison' },
    h('p', { class: 'sentence' }, ...prose(words.sentence)),
    [...words.scaling, ...(words.achieved ? [words.achieved] : [])].map((line) => h('p', null, ...prose(line))),
    both.differences.map((/** @type {string} */ line) => h('p', { class: 'notices' }, ...prose(`! ${line}`))),
  );
}

/** @param {Comparison} comparison */
function sides({ document: both }) {
  return h('div', { class: 'two' }, (/** @type {const} */ (['before', 'after'])).map((which) => panel(
    which === 'before' ? 'Before' : 'After',
    null,
    h('p', { class: 'dim' }, h('bdi', { class: 'name' }, visible(both[which].path)),
      ` · ${both[which].steps_used} steps used`),
    h('p', null, ...prose(both[which].verdict)),
  )));
}

/** @param {ComparisonDocument} both */
function figures({ achieved, scaling }) {
  return tiles([
    achieved && ['predicted step', formatNs(achieved.predicted_step_ns), 'without what is gone or less'],
    achieved && ['measured step', formatNs(achieved.measured_step_ns),
      `the prediction is ${formatShare(Math.abs(achieved.off_share))} off`],
    scaling && [scaling.unit, `${scaling.devices_before} → ${scaling.devices_after}`],
    scaling && ['scaling efficiency', known(scaling.efficiency, formatShare), 'with the same batch on each'],
    ...(scaling?.losses ?? []).filter((one) => one.ns_per_step).map((one) =>
      /** @type {Tile} */ ([one.cause, formatSigned(one.ns_per_step), 'per step'])),
  ]);
}

/** @param {Context} context @param {ComparisonDocument} both */
function distributions(context, both) {
  const { before, after, step_time: step } = both;
  if (!before.step_ns.length || !after.step_ns.length) {
    return panel('Step times', null, missing('Not both runs have a step that was recorded whole.'));
  }
  const band = step.low_ns === null || step.high_ns === null ? null
    : /** @type {[number, number]} */ ([step.before_ns + step.low_ns, step.before_ns + step.high_ns]);
  const tell = (/** @type {number} */ row, /** @type {number} */ at) => {
    const [name, side] = row ? ['after', after] : ['before', before];
    return `${name}, used step ${at + 1} of ${side.steps_used}: ${formatNs(side.step_ns[at])}`;
  };
  const interval = band === null ? 'Too few steps for an interval.'
    : 'The band is where the mean lies after the change, with 95 % certainty, counted from the mean before it.';
  return charted('Step times', { note: `A dot is a step, a line the mean. ${interval}` }, () => dots({
    label: 'Step times before and after',
    rows: [
      { label: 'before', values: before.step_ns, mean: step.before_ns, band: null },
      { label: 'after', values: after.step_ns, mean: step.after_ns, band },
    ],
    format: formatNs,
    tell,
    announce: context.announce,
  }), () => table({
    label: 'Step times',
    rows: [before, after].flatMap((side, at) => side.step_ns.map(
      (value, index) => ({ run: at ? 'after' : 'before', index, value }))),
    columns: [word('run', (row) => row.run), number('used step', (row) => row.index + 1),
      ns('time', (row) => row.value)],
  }));
}

/** @param {Context} context @param {ComparisonDocument} both */
function parts(context, both) {
  const rows = both.parts;
  if (!rows.length) return null;
  const of = (/** @type {'before_ns'|'after_ns'} */ key) => (
    Object.fromEntries(rows.map((row) => [row.category, row[key]])));
  return panel('Where each step\'s time goes', { note: 'means per step and device' },
    compared(context, [
      { label: 'before', total: both.step_time.before_ns, parts: of('before_ns') },
      { label: 'after', total: both.step_time.after_ns, parts: of('after_ns') },
    ]),
    table({
      label: 'Parts before and after',
      rows,
      columns: [word('part', (row) => row.label), ...differences(),
        word('changed', (row) => (row.told ? 'yes' : 'within noise, or too little to matter'))],
    }));
}

/** @param {Context} context @param {ComparisonDocument} both */
function work(context, both) {
  const layered = both.work?.some(({ path }) => path.length > 2);
  return places(context, `Difference by ${layered ? 'layer, op' : 'op'} and kernel`, both.work ?? [], false);
}

/** @param {Context} context @param {ComparisonDocument} both */
function python(context, both) {
  /** @type {string[][]} */
  const paths = [];
  for (const { name, caller } of both.calls ?? []) paths.push([...(paths[caller] ?? []), name]);
  return places(context, 'Difference by Python function', (both.calls ?? []).map((one, at) => (
    { ...one, path: paths[at] })), true);
}

/**
 * Both runs in one flame graph: as wide as the longer of the two.
 * @param {Context} context
 * @param {string} title
 * @param {{path: string[], before_ns: number, after_ns: number}[]} rows
 * @param {boolean} whole whether each has what is in it
 */
function places(context, title, rows, whole) {
  if (!rows.length) return null;
  const note = 'red takes longer than before, blue less, the deeper the more of it; as wide as the longer of both';
  return charted(title, { note }, () => flame({
    label: `${title}. Arrow keys move, Enter looks closer, Escape shows the whole`,
    leaves: rows.map(({ path, before_ns: before, after_ns: after }) => (
      { path, value: Math.max(before, after), change: after - before, whole })),
    format: (_, change) => `${change ? formatSigned(change) : 'no difference'} per step`,
    announce: context.announce,
    changes: true,
  }), () => table({
    label: `${title}, as a table`,
    rows: rows.map((row) => ({ ...row, difference: row.after_ns - row.before_ns })),
    columns: [
      named('place', (row) => row.path.join(' / ')),
      ns('before', (row) => row.before_ns),
      ns('after', (row) => row.after_ns),
      { title: 'difference', value: (row) => row.difference, numeric: true, unit: 'ns',
        show: (row) => formatSigned(row.difference) },
    ],
  }));
}

/** @param {string} title @param {ComparedItem[]} rows */
function items(title, rows) {
  if (!rows.length) return null;
  return panel(title, { note: 'what changed by more than noise, per step; largest difference first' }, table({
    label: title,
    rows,
    columns: [
      named('name', (row) => row.name),
      named('now called', (row) => row.renamed),
      named('op', (row) => row.op),
      ...differences(),
      number('calls before', (row) => row.count_before, formatPerStep),
      number('calls after', (row) => row.count_after, formatPerStep),
    ],
  }));
}

/** @returns {import('../widgets/table.js').Column<Change>[]} */
function differences() {
  return [
    ns('before', (row) => row.before_ns),
    ns('after', (row) => row.after_ns),
    { title: 'difference', value: (row) => row.difference_ns, numeric: true,
      show: (row) => h('span', { class: row.told === false ? 'dim' : row.difference_ns < 0 ? 'good' : 'worse' },
        formatSigned(row.difference_ns)) },
    { title: 'share', value: (row) => row.share, numeric: true,
      show: (row) => (row.share ? `${row.share > 0 ? '+' : '−'}${formatShare(Math.abs(row.share))}` : '–') },
    { title: '95 % interval', value: (row) => row.low_ns, numeric: true,
      show: (row) => (row.low_ns === null || row.high_ns === null ? 'not determined'
        : `${formatSigned(row.low_ns)} to ${formatSigned(row.high_ns)}`) },
  ];
}

/** @param {Comparison} comparison */
function findings({ document: both, words }) {
  if (!both.findings.length) return panel('Findings', null, h('p', null, 'Neither run has a finding.'));
  const states = Object.keys(STATES).filter((state) => both.findings.some((one) =>
    one.state === state));
  return panel('Findings', null, states.map((state) => h(
    'section',
    { class: `changes ${state}` },
    h('h3', null, STATES[state]),
    h('ul', { class: 'plain' }, words.findings.filter((_, at) => both.findings[at].state === state)
      .map((line) => h('li', null, ...prose(line)))),
  )));
}

/** @param {ComparisonDocument} both */
function budgets(both) {
  if (!both.budgets.length) return null;
  return panel('Conditions', null, table({
    label: 'Conditions',
    rows: both.budgets,
    columns: [word('condition', (row) => row.condition), word('held', (row) => (row.fired ? 'fired' : 'no')),
      { title: 'why', wide: true, value: (row) => row.text }],
  }));
}
