/** Of a job: each rank in each step, and whom each step waited for. */

import { h, put } from '../core/dom.js';
import { there } from '../core/types.js';
import { ns, number, word } from '../widgets/columns.js';
import { lane, laneName } from '../widgets/lanes.js';
import { charted, missing, panel } from '../widgets/panel.js';
import { table } from '../widgets/table.js';
import { chart, hasApart, lanesOf, openRanks, perRow } from './job_heat.js';

/** @typedef {import('../core/types.js').Context} Context */
/** @typedef {import('./job_heat.js').Lane} Lane */
/** @typedef {import('./job_heat.js').Cell} Cell */
/** @typedef {import('./job_heat.js').LaneCells} LaneCells */

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
  const seen = lanesOf(lanes, context.place.params.ranks);
  const draw = () => put(slot, chart(context, { lanes: seen, columns, shown,
    title: what.find(([id]) => id === shown)?.[1] ?? '' }));
  const choice = h('select', { 'aria-label': 'What the cells show', onchange: () => {
    shown = what[choice.selectedIndex][0];
    draw();
  } }, what.map(([id, text]) => h('option', { value: id, selected: id === shown }, text)));
  draw();
  const all = seen.length === lanes.length ? null : h('button', { type: 'button',
    onclick: () => openRanks(context, shown, '') }, 'All ranks');
  const actions = all ? [all, choice] : [choice];
  return charted('Each rank in each step', { note: noteOf(context, lanes, seen), actions }, () => slot,
    () => cellTable(context, lanes, columns));
}

/**
 * @param {Context} context
 * @param {LaneCells[]} lanes
 * @param {LaneCells[]} seen those that the address chooses
 */
function noteOf({ report }, lanes, seen) {
  const { per_rank: all, steps } = there(report.analyses.ranks);
  const several = perRow(seen.length);
  const pieces = [
    several > 1 ? `A row is ${several} ranks, a cell the largest of them; a click opens its ranks.`
      : 'A row is a rank, a column a step.',
    hasApart(seen.length) ? 'Ranks that stand out have rows of their own above.' : '',
    lanes.length < all.length ? `${lanes.length} of ${all.length} ranks, the late ones first.` : '',
    steps.length ? '' : 'Who was late is not determined: no clocks or collectives tell it.',
  ];
  return pieces.filter(Boolean).join(' ');
}

/**
 * The accounting of steps by rank (and device) and step number, with what others waited for the late one.
 * @param {import('../core/types.js').Report} report
 */
export function grid(report) {
  const numbers = new Map(report.steps.map((step) => [`${step.rank}/${step.index}`, step.number ?? step.index]));
  /** @type {Map<string, LaneCells>} */
  const rows = new Map();
  const at = (/** @type {Lane} */ { rank, device }) => {
    const key = `${rank}/${device}`;
    const line = rows.get(key) ?? { lane: { rank, device }, cells: new Map() };
    rows.set(key, line);
    return line.cells;
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
 */
function cellTable(context, lanes, columns) {
  const rows = lanes.flatMap(({ lane: of, cells }) => columns.filter((one) => cells.has(one)).map((one) => ({
    ...of, number: one, ...cells.get(one),
  })));
  const present = new Set(rows.flatMap(({ row }) => Object.keys(row?.parts ?? {})));
  return table({
    label: 'Ranks and steps',
    rows: rows,
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
        ...(rows.every((row) => row.used) ? []
          : [word('in the means', (row) => (row.used ? 'yes' : 'no'))]),
        { title: 'late', value: laneName },
        ns('others waited', (row) => row.waited_ns),
        word('because of', (row) => words.causes[row.cause]),
        word('by way of', (row) => (row.chain.length > 1 ? row.chain.join(' → ') : null)),
      ],
    }));
}
