/** What takes time and memory on the ranks of a job, by name: their mean, the least and the most of it. */

import { h } from '../core/dom.js';
import { name } from '../core/text.js';
import { formatBytes, formatNs, formatPerStep } from '../core/units.js';
import { number, word } from '../widgets/columns.js';
import { missing, panel } from '../widgets/panel.js';
import { related, tiles } from '../widgets/related.js';
import { table } from '../widgets/table.js';

/** @typedef {import('../core/types.js').Context} Context */
/** @typedef {import('../core/document.js').OverRanks} OverRanks */
/** @typedef {import('../core/document.js').UseOverRanks} UseOverRanks */
/** @typedef {import('../core/document.js').MemoryOverRanks} MemoryOverRanks */
/** @typedef {'kernels'|'ops'|'input'|'memory'} OfJob */
/** @typedef {{rank: number, value: number, count?: number|null}} One */
/**
 * @typedef {One & {name: string, of?: string|null, ranks?: number, least?: One, most?: One, inner?: Row[]}} Row of all
 *   ranks (`rank` is then that with most) or, without `most`, of one of them
 */

/** What more than the mean is told as such. */
const ABOVE = 1.05;
const KINDS = /** @type {const} */ ({
  peak: 'most in use', reserved: 'most reserved', left: 'left of the limit', growth: 'growth per step',
});

/** @type {Record<OfJob, {title: string, of: string, lists: [string, keyof OverRanks][]}>} */
const PAGES = {
  kernels: { title: 'Kernels', of: '', lists: [['Kernels', 'kernels']] },
  ops: { title: 'Ops', of: 'side', lists: [['Ops by type', 'ops'], ['Layers', 'layers']] },
  input: { title: 'Input', of: 'by', lists: [['Stages of the input pipeline', 'stages']] },
  memory: { title: 'Memory', of: 'of', lists: [['Memory', 'memory']] },
};

/**
 * Whether the ranks of a job have anything for a page.
 * @param {import('../core/types.js').Report} report
 * @param {OfJob} page
 */
export function hasOverRanks({ analyses }, page) {
  return PAGES[page].lists.some(([, key]) => analyses.over_ranks?.[key].length);
}

/** @param {Context} context @param {OfJob} page */
export function overRanks(context, page) {
  const { title, of, lists } = PAGES[page];
  const shown = lists.map(([label, key]) => ({ label, key, rows: rowsOf(context, key) }))
    .filter(({ rows }) => rows.length);
  return h(
    'div',
    { class: 'page' },
    shown.length ? figures(shown[0].rows, page) : panel(title, null, missing('No rank recorded anything of this.')),
    shown.map(({ label, key, rows }) => list(context, { label, of, size: key === 'memory', rows })),
    alone(context),
    related(context, page),
  );
}

/** The same page of one rank. @param {Context} context */
export function alone(context) {
  const ranks = Object.keys(context.run.traces).map(Number).sort((a, b) => a - b);
  if (!ranks.length) return null;
  return panel('One rank alone', { note: context.run.no_pack }, h('div', { class: 'choices' }, ranks.map((rank) =>
    h('button', { type: 'button', onclick: () => context.ofRank(rank) }, `Rank ${rank}`))));
}

/** @param {Context} context @param {keyof OverRanks} key @returns {Row[]} */
function rowsOf({ report, words }, key) {
  const uses = report.analyses.over_ranks?.[key] ?? [];
  if (key !== 'memory') return /** @type {UseOverRanks[]} */ (uses).map(ofUse);
  return /** @type {MemoryOverRanks[]} */ (uses).map((one) => ofMemory(one,
    KINDS[/** @type {keyof typeof KINDS} */ (one.what)] ?? `in use at the peak: ${words.memory[one.what]}`));
}

/** @param {UseOverRanks} one @returns {Row} */
function ofUse({ name: label, of, ranks, mean_ns_per_step: value, count_per_step: count, each }) {
  return merged({ name: label, of, ranks, value, count },
    each.map((one) => ({ name: label, rank: one.rank, value: one.ns_per_step, count: one.count_per_step })));
}

/** @param {MemoryOverRanks} one @param {string} label @returns {Row} */
function ofMemory({ on_host: onHost, ranks, mean_bytes: value, each }, label) {
  return merged({ name: label, of: onHost ? 'host' : 'device', ranks, value },
    each.map((one) => ({ name: label, rank: one.rank, value: one.bytes })));
}

/** @param {Omit<Row, 'rank'>} row @param {Row[]} inner @returns {Row} */
function merged(row, inner) {
  const [most, least] = [inner[0], inner[inner.length - 1]];
  return { ...row, rank: most.rank, most, least, inner };
}

/** The rank that stands out. @param {Row[]} rows @param {OfJob} page */
function figures(rows, page) {
  if (page === 'memory' || page === 'input') { // Of these the first row holds the others.
    const [{ name: label, most, value }] = rows;
    const format = page === 'memory' ? formatBytes : formatNs;
    return tiles([[label, format(value), 'mean of the ranks'],
      most && ['the most of any rank', format(most.value), `on rank ${most.rank}`]]);
  }
  /** @type {Map<number, {ns: number, rows: number}>} */
  const above = new Map();
  for (const { most, value } of rows) {
    if (!most || most.value < ABOVE * value) continue;
    const known = above.get(most.rank) ?? { ns: 0, rows: 0 };
    above.set(most.rank, { ns: known.ns + most.value - value, rows: known.rows + 1 });
  }
  const [first] = [...above].sort((a, b) => b[1].ns - a[1].ns);
  const rest = first && `by ${formatNs(first[1].ns)} per step, in ${first[1].rows} of ${rows.length} rows`;
  return tiles([first ? ['furthest above the others', `rank ${first[0]}`, rest]
    : ['furthest above the others', { untold: `none takes ${Math.round((ABOVE - 1) * 100)} % more than the mean` }]]);
}

/**
 * @param {Context} context
 * @param {{label: string, of: string, size: boolean, rows: Row[]}} given
 */
function list(context, { label, of, size, rows }) {
  const format = size ? formatBytes : formatNs;
  const longest = Math.max(...rows.map((row) => Math.abs(row.value)), 1);
  const rankOf = (/** @type {number} */ rank, /** @type {string} */ sought) => (context.hasTrace(rank)
    ? h('button', { type: 'button', class: 'link', onclick: () => context.ofRank(rank, { name: sought }) },
      `rank ${rank}`)
    : `rank ${rank}`);
  /** @param {string} title @param {'least'|'most'} key */
  const end = (title, key) => [
    { ...number(title, (/** @type {Row} */ row) => row[key]?.value, format), unit: size ? 'bytes' : 'ns' },
    { title: `${title} on`, value: (/** @type {Row} */ row) => row[key]?.rank,
      show: (/** @type {Row} */ row) => (row[key] ? rankOf(row[key].rank, row.name) : '') },
  ];
  const [{ inner = [] }] = rows;
  const cut = rows.some((row) => (row.ranks ?? 0) > (row.inner ?? inner).length)
    ? ', those with most and those with least' : '';
  return panel(`${label} over the ranks`, {
    note: `${size ? '' : 'means per step of the ranks that list it; '}a row opens to its ranks${cut}`,
  }, table({
    label,
    rows,
    inner: (row) => row.inner ?? [],
    times: (row) => row.ranks,
    filter: context.place.params.name,
    columns: [
      { title: 'name', value: (row) => row.name, names: true,
        show: (row) => (row.most ? name(row.name) : rankOf(row.rank, row.name)) },
      word(of || 'of', (row) => row.of),
      { title: 'mean', value: (row) => row.value, numeric: true, unit: size ? 'bytes' : 'ns',
        show: (row) => h('span', { class: 'share wide' },
          h('i', { style: { width: `${(Math.abs(row.value) / longest) * 100}%` } }), format(row.value)) },
      number('count', (row) => row.count, formatPerStep),
      ...end('least', 'least'),
      ...end('most', 'most'),
      number('most / mean', (row) => (row.most && row.value > 0 ? row.most.value / row.value : null),
        (value) => `${value.toFixed(2)} ×`),
      number('ranks', (row) => row.ranks, String),
    ],
  }));
}
