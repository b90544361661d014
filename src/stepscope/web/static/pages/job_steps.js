/** Of a job: each rank in each step, and whom each step waited for. */

import { h, put } from '../core/dom.js';
import { there } from '../core/types.js';
import { formatNs, orDash } from '../core/units.js';
import { ns, number, word } from '../widgets/columns.js';
import { traceParams } from '../widgets/finding.js';
import { heatmap } from '../widgets/heatmap.js';
import { swatch } from '../widgets/hbar.js';
import { lane, laneName } from '../widgets/lanes.js';
import { charted, missing, panel } from '../widgets/panel.js';
import { table } from '../widgets/table.js';
import { tipLines } from '../widgets/tip.js';

/** @typedef {import('../core/types.js').Context} Context */
/** @typedef {import('../core/types.js').AccountRow} AccountRow */
/** @typedef {Record<string, any>} Row */
/** @typedef {{rank: number|null, device: number|null}} Lane */
/** @typedef {{row: AccountRow|null, waited: number}} Cell */

/** @param {Context} context */
export function heat(context) {
  const { report, words } = context;
  const { lanes, columns } = grid(report);
  if (!lanes.length) return panel('Each rank in each step', null, missing('No step was recorded whole.'));
  const present = new Set(lanes.flatMap(({ cells }) => [...cells.values()].flatMap(({ row }) =>
    Object.keys(row?.parts ?? {}))));
  const blamed = there(report.analyses.ranks).steps.length > 0;
  const what = /** @type {[string, string][]} */ ([
    ...(blamed ? [['waited', 'what the others waited for it']] : []),
    ['time', 'step time'],
    ...Object.keys(words.categories).filter((one) => present.has(one)).map((one) => [one, words.categories[one].words]),
  ]);
  const asked = context.place.params.show ?? '';
  let shown = what.some(([id]) => id === asked) ? asked : what[0][0];
  const slot = h('div', null);
  const draw = () => put(slot, chart(context, lanes, columns, shown, what));
  const choice = h('select', { 'aria-label': 'What the cells show', onchange: () => {
    shown = what[choice.selectedIndex][0];
    draw();
  } }, what.map(([id, text]) => h('option', { value: id, selected: id === shown }, text)));
  draw();
  const cut = lanes.length < there(report.analyses.ranks).per_rank.length
    ? `; ${lanes.length} of ${there(report.analyses.ranks).per_rank.length}, the late ones first` : '';
  const note = blamed ? `A row is a rank, a column a step${cut}.`
    : `A row is a rank, a column a step${cut}. Who was late is not determined: no clocks or collectives tell it.`;
  return charted('Each rank in each step', { note, actions: [choice] }, () => slot,
    () => cellTable(context, lanes, columns));
}

/**
 * The accounting of steps by rank (and device) and step number, with what others waited for the late one.
 * @param {import('../core/types.js').Report} report
 */
export function grid(report) {
  const numbers = new Map(report.steps.map((step) => [`${step.rank}/${step.index}`, step.number ?? step.index]));
  /** @type {Map<string, {lane: Lane, cells: Map<number, Cell>}>} */
  const rows = new Map();
  const at = (/** @type {Lane} */ { rank, device }) => {
    const key = `${rank}/${device}`;
    const found = rows.get(key) ?? { lane: { rank, device }, cells: new Map() };
    rows.set(key, found);
    return found.cells;
  };
  for (const row of report.accounting) {
    const step = row.phase === 'step' ? numbers.get(`${row.rank}/${row.step}`) : undefined;
    if (step !== undefined) at(row).set(step, { row, waited: 0 });
  }
  for (const late of there(report.analyses.ranks).steps) {
    const cell = rows.get(`${late.rank}/${late.device}`)?.cells.get(late.number);
    if (cell) cell.waited = late.waited_ns;
  }
  const columns = [...new Set([...rows.values()].flatMap(({ cells }) => [...cells.keys()]))].sort((a, b) => a - b);
  return { lanes: [...rows.values()], columns };
}

/**
 * @param {Context} context
 * @param {ReturnType<typeof grid>['lanes']} lanes
 * @param {number[]} columns
 * @param {string} shown
 * @param {[string, string][]} what
 */
function chart(context, lanes, columns, shown, what) {
  const { words } = context;
  const cell = (/** @type {number} */ y, /** @type {number} */ x) => lanes[y].cells.get(columns[x]);
  const heading = (/** @type {number} */ y, /** @type {number} */ x) =>
    `${laneName(lanes[y].lane)}, step ${columns[x]}: ${orDash(cell(y, x)?.row?.dur_ns, formatNs)}`;
  const pairs = (/** @type {number} */ y, /** @type {number} */ x) => {
    const found = cell(y, x);
    return [
      ...(found?.waited ? [{ label: 'the others waited for it', value: formatNs(found.waited) }] : []),
      ...Object.entries(found?.row?.parts ?? {}).map(([category, value]) => ({
        label: words.categories[category].words,
        value: formatNs(value),
        swatch: swatch(category, words.categories[category].busy),
      })),
    ];
  };
  const linked = lanes.some((one) => context.hasTrace(one.lane.rank));
  return heatmap({
    label: `Ranks and steps: ${what.find(([id]) => id === shown)?.[1]}`,
    rows: lanes.map((one) => laneName(one.lane)),
    columns: columns.map(String),
    values: lanes.map((_, y) => columns.map((_number, x) => valueOf(cell(y, x), shown))),
    colour: shown === 'waited' ? 'heat-waited' : shown === 'time' ? 'heat-time' : `cat-${shown}`,
    fromLeast: shown === 'time',
    format: formatNs,
    tell: (y, x) => tipLines(heading(y, x), pairs(y, x)),
    say: (y, x) => context.announce([heading(y, x), ...pairs(y, x).map((one) => `${one.label} ${one.value}`)]
      .join('; ')),
    ...(linked ? { open: (/** @type {number} */ y, /** @type {number} */ x) => {
      const row = cell(y, x)?.row;
      if (row && context.hasTrace(row.rank)) context.trace(row.rank, traceParams(row.start_ns, row.dur_ns, null));
    } } : {}),
  });
}

/** @param {Cell|undefined} cell @param {string} shown */
function valueOf(cell, shown) {
  if (!cell) return null;
  if (shown === 'waited') return cell.waited;
  return shown === 'time' ? cell.row?.dur_ns ?? null : cell.row?.parts[shown] ?? 0;
}

/**
 * @param {Context} context
 * @param {ReturnType<typeof grid>['lanes']} lanes
 * @param {number[]} columns
 */
function cellTable(context, lanes, columns) {
  const rows = lanes.flatMap(({ lane: of, cells }) => columns.filter((one) => cells.has(one)).map((one) => ({
    ...of, number: one, ...cells.get(one),
  })));
  const present = new Set(rows.flatMap(({ row }) => Object.keys(row?.parts ?? {})));
  return table({
    label: 'Ranks and steps',
    rows: /** @type {Row[]} */ (rows),
    columns: [
      ...lane(),
      number('step', (row) => row.number, String),
      ns('step time', (row) => row.row?.dur_ns),
      ns('others waited for it', (row) => row.waited),
      ...Object.keys(context.words.categories).filter((one) => present.has(one))
        .map((one) => ns(context.words.categories[one].words, (row) => row.row?.parts[one] ?? 0)),
    ],
  });
}

/** @param {Context} context */
export function lateSteps({ report, words }) {
  const rows = there(report.analyses.ranks).steps;
  if (!rows.length) return null;
  return panel('Whom each step waited for', { note: 'by way of: a rank that came late because it waited for another' },
    table({
      label: 'Whom each step waited for',
      rows,
      columns: [
        number('step', (row) => row.number, String),
        ns('step time', (row) => row.dur_ns),
        ...(rows.every((/** @type {Row} */ row) => row.used) ? []
          : [word('in the means', (row) => (row.used ? 'yes' : 'no'))]),
        { title: 'late', value: laneName },
        ns('others waited', (row) => row.waited_ns),
        word('because of', (row) => words.causes[row.cause]),
        word('by way of', (row) => (row.chain.length > 1 ? row.chain.join(' → ') : null)),
      ],
    }));
}
