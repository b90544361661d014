/** The ranks of one job beside each other: whom the others waited for, why, and what collectives cost. */

import { h, put } from '../core/dom.js';
import { visible } from '../core/text.js';
import { ABSENT, formatNs, formatPerStep, formatRate, formatSigned, orDash } from '../core/units.js';
import { named, ns, number, share, size, word } from '../widgets/columns.js';
import { compared } from '../widgets/compared.js';
import { traceParams } from '../widgets/finding.js';
import { heatmap } from '../widgets/heatmap.js';
import { swatch } from '../widgets/hbar.js';
import { charted, missing, panel } from '../widgets/panel.js';
import { related, tiles } from '../widgets/related.js';
import { table } from '../widgets/table.js';
import { tipLines } from '../widgets/tip.js';

/** @typedef {import('../core/types.js').Context} Context */
/** @typedef {import('../core/types.js').AccountRow} AccountRow */
/** @typedef {Record<string, any>} Row */
/** @typedef {{rank: number|null, device: number|null}} Lane */
/** @typedef {{row: AccountRow|null, waited: number}} Cell */

const NOT_DETERMINED = 'not determined';
const MOST_BARS = 64;
const RULES = ['straggler', 'exposed_collective', 'collective_bandwidth', 'imbalance', 'pipeline_bubble'];

/** @param {Context} context */
export function job(context) {
  return h(
    'div',
    { class: 'page' },
    figures(context),
    heat(context),
    stragglers(context),
    breakdowns(context),
    lateSteps(context),
    collectives(context),
    clocks(context),
    unread(context),
    related(context, RULES),
  );
}

/** @param {Context} context */
function figures({ report }) {
  const { ranks } = report.analyses;
  const [first] = ranks.stragglers;
  const of = ranks.world_size === null ? 'how many the job has is not recorded' : `of ${ranks.world_size}`;
  return tiles([
    ['ranks read', String(ranks.present), of],
    ranks.determined
      ? ['stragglers', String(ranks.stragglers.length), 'ranks late step after step, beyond chance']
      : ['stragglers', NOT_DETERMINED, 'too few steps, or no clocks to compare'],
    first && ['the others wait', formatNs(first.waited_ns_per_step), `per step for ${laneName(first)}`],
  ]);
}

/** @param {Row} lane */
export function laneName({ rank, device }) {
  return device === null || device === 0 ? `rank ${rank}` : `rank ${rank}, device ${device}`;
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
  for (const late of report.analyses.ranks.steps) {
    const cell = rows.get(`${late.rank}/${late.device}`)?.cells.get(late.number);
    if (cell) cell.waited = late.waited_ns;
  }
  const columns = [...new Set([...rows.values()].flatMap(({ cells }) => [...cells.keys()]))].sort((a, b) => a - b);
  return { lanes: [...rows.values()], columns };
}

/** @param {Context} context */
function heat(context) {
  const { report, words } = context;
  const { lanes, columns } = grid(report);
  if (!lanes.length) return panel('Each rank in each step', null, missing('No step was recorded whole.'));
  const present = new Set(lanes.flatMap(({ cells }) => [...cells.values()].flatMap(({ row }) =>
    Object.keys(row?.parts ?? {}))));
  const blamed = report.analyses.ranks.steps.length > 0;
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
  const cut = lanes.length < report.analyses.ranks.per_rank.length
    ? `; ${lanes.length} of ${report.analyses.ranks.per_rank.length}, the late ones first` : '';
  const note = blamed ? `A row is a rank, a column a step${cut}.`
    : `A row is a rank, a column a step${cut}. Who was late is not determined: no clocks or collectives tell it.`;
  return charted('Each rank in each step', { note, actions: [choice] }, () => slot,
    () => cellTable(context, lanes, columns));
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
function stragglers({ report, words }) {
  const { ranks } = report.analyses;
  if (!ranks.determined) {
    return panel('Stragglers', null, missing('Whether a rank is late beyond chance is not determined: that needs '
      + 'collectives that several ranks recorded, and more steps.'));
  }
  if (!ranks.stragglers.length) {
    return panel('Stragglers', null, h('p', null, 'No rank is late step after step, beyond chance.'));
  }
  return panel('Stragglers', { note: 'p: how likely chance alone makes a rank late as often' }, table({
    label: 'Stragglers',
    rows: ranks.stragglers,
    columns: [
      ...lane(),
      named('host', (row) => row.host),
      ns('others wait per step', (row) => row.waited_ns_per_step),
      ns('saves per step', (row) => row.saving_ns_per_step),
      number('late in steps', (row) => row.steps),
      number('p', (row) => row.p_value, (value) => (value < 0.001 ? value.toExponential(1) : value.toPrecision(2))),
      word('cause', (row) => words.causes[row.cause]),
      { title: 'more than the others', wide: true, value: (row) => excess(words, row) },
      { title: 'kernels that take longer', wide: true, value: (row) => row.kernels.map((/** @type {Row} */ one) =>
        `${one.name} (${one.times.toFixed(2)} ×)`).join(', ') || null },
    ],
  }));
}

/** @param {import('../core/types.js').Words} words @param {Row} row */
function excess(words, row) {
  return Object.entries(row.excess_ns_per_step).map(([category, value]) =>
    `${words.categories[category].words} ${formatNs(value)}`).join(', ') || null;
}

/** @param {Context} context */
function breakdowns({ report, words }) {
  const all = /** @type {Row[]} */ (report.analyses.ranks.per_rank);
  if (!all.length) return null;
  const ordered = [...all].sort((a, b) => (b.made_wait_ns_per_step ?? 0) - (a.made_wait_ns_per_step ?? 0));
  const present = Object.keys(words.categories).filter((one) => all.some((row) => row.parts_ns_per_step[one]));
  const cut = all.length > MOST_BARS ? `; ${MOST_BARS} of ${all.length}, Table has all` : '';
  const note = `means per step; those the others wait for come first${cut}`;
  return charted('Where the time of each rank goes', { note }, () => compared(words,
    ordered.slice(0, MOST_BARS).map((row) => ({
      label: laneName(row), total: row.step_ns, parts: row.parts_ns_per_step,
    }))), () => table({
    label: 'Time of each rank',
    rows: ordered,
    columns: [
      ...lane(),
      named('host', (row) => row.host),
      ns('step time', (row) => row.step_ns),
      told('others wait for it', (row) => row.made_wait_ns_per_step, formatNs),
      told('late in steps', (row) => row.late_steps, String),
      ns('waits in the pipeline', (row) => row.pipeline_wait_ns_per_step),
      ...present.map((one) => ns(words.categories[one].words, (row) => row.parts_ns_per_step[one] ?? 0)),
    ],
  }));
}

/** @param {Context} context */
function lateSteps({ report, words }) {
  const rows = report.analyses.ranks.steps;
  if (!rows.length) return null;
  return panel('Whom each step waited for', { note: 'by way of: a rank that came late because it waited for another' },
    table({
      label: 'Whom each step waited for',
      rows,
      columns: [
        number('step', (row) => row.number, String),
        ns('step time', (row) => row.dur_ns),
        { title: 'late', value: laneName },
        ns('others waited', (row) => row.waited_ns),
        word('because of', (row) => words.causes[row.cause]),
        word('by way of', (row) => (row.chain.length > 1 ? row.chain.join(' → ') : null)),
      ],
    }));
}

/** @param {Context} context */
function collectives({ report }) {
  const rows = /** @type {Row[]} */ (report.analyses.collectives ?? []);
  if (!rows.length) {
    return panel('Collectives', null, missing('No collective was recorded by several of these ranks.'));
  }
  const link = rows.some((row) => row.link_bandwidth !== null) ? '' : ' What the link can do is not known.';
  const note = `transfer: from the last rank's arrival to the end (≤: at most); wait: of a rank for the last one.${
    link}`;
  const bound = (/** @type {Row} */ row, /** @type {string} */ sign) => (row.bound ? `${sign} ` : '');
  const rate = (/** @type {string} */ title, /** @type {string} */ key) => ({
    title,
    value: (/** @type {Row} */ row) => row[key],
    numeric: true,
    show: (/** @type {Row} */ row) => (row[key] === null ? ABSENT : `${bound(row, '≥')}${formatRate(row[key], 'B/s')}`),
  });
  return panel('Collectives', { note }, table({
    label: 'Collectives',
    rows,
    columns: [
      word('kind', (row) => row.kind.replaceAll('_', '-')),
      named('group', (row) => row.group),
      number('ranks', (row) => row.size),
      size('size', (row) => row.bytes),
      number('per step', (row) => row.per_step, formatPerStep),
      ns('duration', (row) => row.duration_ns),
      told('wait', (row) => row.wait_ns, formatNs),
      { title: 'transfer', value: (row) => row.transfer_ns, numeric: true,
        show: (row) => (row.transfer_ns === null ? NOT_DETERMINED : `${bound(row, '≤')}${formatNs(row.transfer_ns)}`) },
      told('exposed per step', (row) => row.exposed_ns_per_step, formatNs),
      rate('algorithm', 'algorithm_bandwidth'),
      rate('bus', 'bus_bandwidth'),
      { title: 'link', value: (row) => row.link_bandwidth, numeric: true,
        show: (row) => orDash(row.link_bandwidth, (/** @type {number} */ value) => formatRate(value, 'B/s')) },
      share('of the link', (row) => (row.bus_bandwidth === null || row.link_bandwidth === null ? null
        : row.bus_bandwidth / row.link_bandwidth)),
      number('most uneven', (row) => row.imbalance, (value) => `${value.toFixed(2)} ×`),
    ],
  }));
}

/** @param {Context} context */
function clocks({ report }) {
  const { ranks } = report.analyses;
  if (ranks.clocks.length < 2) return null;
  const note = 'what to add to a rank\'s clock to have the first one\'s, learnt from collectives that end together';
  return panel('Clocks', { note }, table({
    label: 'Clocks',
    rows: ranks.clocks,
    columns: [
      number('rank', (row) => row.rank, String),
      told('offset', (row) => row.offset_ns, formatSigned),
      told('uncertainty', (row) => row.uncertainty_ns, (value) => `± ${formatNs(value)}`),
      told('drift', (row) => row.drift, (value) => `${formatSigned(Math.round(value * 1e9))}/s`),
      number('collectives', (row) => row.collectives),
    ],
  }));
}

/** @param {Context} context */
function unread({ report }) {
  const { missing: absent, unreadable } = report.analyses.ranks;
  if (!absent.length && !unreadable.length) return null;
  return panel('Ranks that are not here', null, h('ul', { class: 'plain' },
    absent.length ? h('li', null, `without a profile: ${absent.slice(0, MOST_BARS).join(', ')}`
      + `${absent.length > MOST_BARS ? `, and ${absent.length - MOST_BARS} more` : ''}`) : null,
    unreadable.map((/** @type {Row} */ one) => h('li', null, h('bdi', null, visible(`${one.path}: ${one.reason}`))))));
}

/** @returns {import('../widgets/table.js').Column<Row>[]} */
function lane() {
  return [
    number('rank', (row) => row.rank, String),
    number('device', (row) => row.device || null, String),
  ];
}

/**
 * A column that says where the report does not know.
 * @param {string} title
 * @param {(row: Row) => number|null|undefined} value
 * @param {(value: number) => string} format
 * @returns {import('../widgets/table.js').Column<Row>}
 */
function told(title, value, format) {
  return { title, value: (row) => value(row) ?? NOT_DETERMINED, numeric: true, show: (row) => {
    const found = value(row);
    return found === null || found === undefined ? NOT_DETERMINED : format(found);
  } };
}
