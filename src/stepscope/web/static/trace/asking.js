/**
 * Asking the trace: SQL by the server where there is one, else groups of slices; as a table, a chart and on the tracks.
 */
import { h, put } from '../core/dom.js';
import { prose, visible } from '../core/text.js';
import { formatCount, formatNs } from '../core/units.js';
import { table } from '../widgets/table.js';
import { FIELDS } from './query.js';
import { GROUPS } from './groups.js';
import { cutMiddle } from './names.js';
import { isSql, slicesOf } from './sql.js';

/** @typedef {import('./app.js').Sql} Sql */
/** @typedef {{sql: Sql|null, groups: (text: string) => Promise<Answer>, text: string, setText: (text: string) => void,
 *   queries: import('../core/queries.js').Queries, shows: string,
 *   show: (text: string, stretches: [number, number][]|null) => void,
 *   counter?: (name: string, unit: string|null, samples: [number, number][]) => void,
 *   track?: (text: string, label: string, rows: import('./found.js').Row[]|null) => void}} Asking `text`: what is
 *   asked first; `show`, by a button named `shows`: of SQL the start and duration of each row, else null; `counter`:
 *   makes one of times and values; `track`: one of slices, `rows` as SQL found them, null for what a search finds */
/** @typedef {import('./groups.js').Answer} Answer */
/** @typedef {import('./groups.js').Cell} Cell */

const WORDS = ['SELECT', 'FROM', 'WHERE', 'GROUP BY', 'ORDER BY', 'LIMIT', 'COUNT(*)', 'SUM(', 'AVG(', 'MAX(', 'DESC'];
const OFFERED = 8;
const BARS = 15;
const FIRST = 'kind:kernel group by name';
const FIRST_SQL = 'SELECT name, COUNT(*) AS n, SUM(dur_ns) AS total_ns FROM ops GROUP BY name ORDER BY total_ns DESC';

/** @param {Asking} asking */
export async function askPanel(asking) {
  const { sql } = asking;
  const first = sql ? FIRST_SQL : FIRST;
  const input = h('textarea', { rows: 2, spellcheck: 'false', class: 'tv-ask', 'aria-label': 'Query',
    placeholder: first });
  input.value = asking.text || first;
  const offers = h('div', { class: 'tv-offers', role: 'group', 'aria-label': 'Completions' });
  const result = h('div', { class: 'tv-answer', role: 'region', 'aria-label': 'Answer' });
  const words = sql ? await sqlWords(sql) : [...FIELDS.map((field) => `${field}:`), 'group by', 'pivot', ...GROUPS];
  const run = asker(asking, input, offers, result);
  const complete = (/** @type {string} */ word) => {
    const before = input.value.slice(0, input.selectionStart).replace(/[\w(*):]*$/, '');
    const after = input.value.slice(input.selectionStart);
    input.value = `${before}${word}${after}`;
    input.selectionStart = input.selectionEnd = before.length + word.length;
    put(offers);
    input.focus();
  };
  const offer = () => {
    const typed = /[\w]+$/.exec(input.value.slice(0, input.selectionStart))?.[0].toLowerCase() ?? '';
    const fitting = typed ? words.filter((word) => word.toLowerCase().startsWith(typed) && word.toLowerCase() !== typed)
      .sort((a, b) => a.length - b.length).slice(0, OFFERED) : [];
    put(offers, fitting.map((word) => h('button', { type: 'button', onclick: () => complete(word) }, word)));
  };
  input.addEventListener('input', offer);
  input.addEventListener('keydown', (event) => {
    const next = offers.querySelector('button');
    if (event.key === 'Enter' && !event.shiftKey) run();
    else if (event.key === 'Tab' && next && !event.shiftKey) complete(next.textContent ?? '');
    else return;
    event.preventDefault();
  });
  if (asking.text) run();
  return [
    h('div', { class: 'tv-actions' }, input, h('button', { type: 'button', onclick: run }, 'Ask')),
    offers,
    saved(asking.queries, input, run),
    h('p', { class: 'tv-dim' }, ...prose(sql
      ? 'SELECT over the tables of the profile, as `stepscope query` takes it; or a search, `group by` and `pivot`.'
      : 'A search, then `group by` and `pivot`. `stepscope view` and `stepscope query` take SQL.')),
    result,
  ];
}

/**
 * Asks what is written, and shows the answer to what was asked last: others may come later.
 * @param {Asking} asking
 * @param {HTMLTextAreaElement} input
 * @param {HTMLElement} offers
 * @param {HTMLElement} result
 */
function asker(asking, input, offers, result) {
  let asked = 0;
  return async () => {
    asked += 1;
    const mine = asked;
    asking.setText(input.value);
    put(offers);
    put(result, h('p', { class: 'tv-dim', role: 'status' }, 'Asking …'));
    const answer = await answered(asking, input.value);
    if (mine === asked) put(result, answer);
  };
}

/**
 * The queries that the reader has named, and the name for another.
 * @param {import('../core/queries.js').Queries} queries
 * @param {HTMLTextAreaElement} input
 * @param {() => void} run
 */
function saved(queries, input, run) {
  const name = h('input', { type: 'text', placeholder: 'name', 'aria-label': 'Name of the query', maxlength: 60,
    size: 14 });
  const all = h('span', { class: 'tv-saved', role: 'group', 'aria-label': 'Saved queries' });
  const set = (/** @type {import('../core/queries.js').Query[]} */ list) => {
    queries.set(list);
    draw();
  };
  const others = (/** @type {string} */ one) => queries.list().filter((query) => query.name !== one);
  const draw = () => put(all, queries.list().flatMap((query) => [
    h('button', { type: 'button', title: query.text, onclick: () => {
      input.value = query.text;
      run();
    } }, visible(query.name)),
    h('button', { type: 'button', 'aria-label': `Forget ${visible(query.name)}`,
      onclick: () => set(others(query.name)) }, '×')]));
  const save = (/** @type {Event} */ event) => {
    event.preventDefault();
    const told = name.value.trim();
    if (!told) name.focus();
    else set([...others(told), { name: told, text: input.value }]);
    name.value = '';
  };
  draw();
  return h('form', { class: 'tv-actions', onsubmit: save }, all, name, h('button', null, 'Save the query'));
}

/** Tables, columns and words of SQL. @param {Sql} sql */
async function sqlWords(sql) {
  const tables = await sql.tables();
  return [...new Set([...Object.keys(tables), ...Object.values(tables).flat(), ...WORDS])];
}

/**
 * @param {Asking} asking
 * @param {string} text
 * @returns {Promise<Node[]>}
 */
async function answered(asking, text) {
  try {
    const bySql = isSql(text);
    if (bySql && !asking.sql) {
      throw new Error('a saved report is not asked in SQL: open the profile with stepscope view');
    }
    /** @type {Answer} */
    const answer = bySql && asking.sql ? await asking.sql.query(text) : await asking.groups(text);
    if (answer.error) throw new Error(answer.error);
    return shown(asking, text, answer, bySql);
  } catch (error) {
    return [h('p', { class: 'tv-bad', role: 'alert' }, /** @type {Error} */ (error).message)];
  }
}

/**
 * @param {Asking} asking
 * @param {string} text
 * @param {Answer} answer
 * @param {boolean} bySql
 */
function shown(asking, text, answer, bySql) {
  const show = (/** @type {Cell} */ value, /** @type {string|null} */ unit) => (
    typeof value !== 'number' ? String(value ?? '–') : unit === 'ns' ? formatNs(value)
      : Number.isInteger(value) ? formatCount(value) : String(value));
  const chart = h('div', null);
  const all = answer.total && answer.total > answer.rows.length ? ` of ${formatCount(answer.total)}` : '';
  const first = all && `first ${formatCount(answer.rows.length)} rows`;
  const cut = all && h('p', { class: 'tv-bad', role: 'note' }, `Table, chart and timeline have the ${
    first}, not all ${formatCount(answer.total ?? 0)}.`);
  return [
    ...(cut ? [cut] : []),
    h('div', { class: 'tv-actions' }, h('span', null, `${formatCount(answer.rows.length)}${all} rows`),
      h('button', { type: 'button', onclick: () => put(chart, bars(answer, show)) }, 'Chart'),
      onTimeline(asking, text, answer, bySql, first)),
    chart,
    table({
      label: 'Answer',
      rows: answer.rows,
      columns: answer.columns.map(({ name, unit }, at) => ({ title: name, value: (/** @type {Cell[]} */ row) => row[at],
        show: (/** @type {Cell[]} */ row) => cutMiddle(show(row[at], unit), 90),
        numeric: answer.rows.some((row) => typeof row[at] === 'number') })),
    }),
  ];
}

/**
 * Buttons that put an answer on the timeline: marks, a track, a counter.
 * @param {Asking} asking
 * @param {string} text
 * @param {Answer} answer
 * @param {boolean} bySql
 * @param {string} first where not all rows are here, which are
 */
function onTimeline({ show, shows, track, counter, queries }, text, answer, bySql, first) {
  const { columns, rows } = answer;
  const [start, dur] = ['start_ns', 'dur_ns'].map((name) => columns.findIndex((one) => one.name === name));
  const values = columns.findLastIndex((_, at) => at !== start && rows.some((row) => typeof row[at] === 'number'));
  const slices = bySql ? slicesOf(answer) : null;
  const button = (/** @type {string} */ title, /** @type {() => void} */ onclick) => (
    h('button', { type: 'button', onclick }, title));
  const asTrack = () => {
    const name = queries.list().find((one) => one.text === text)?.name ?? text.trim();
    track?.(text, [name, first].filter(Boolean).join(', '), slices);
  };
  const asCounter = () => counter?.([columns[values].name, first].filter(Boolean).join(', '), columns[values].unit,
    rows.flatMap((row) => (typeof row[start] === 'number' && typeof row[values] === 'number'
      ? [/** @type {[number, number]} */ ([row[start], row[values]])] : [])));
  return [
    bySql && start < 0 ? null : button(shows, () => show(text, bySql
      ? rows.map((row) => [Number(row[start]), Number(row[dur] ?? 0)]) : null)),
    track && (!bySql || slices) ? button('Slices as a track', asTrack) : null,
    counter && start >= 0 && values >= 0 ? button(`${columns[values].name} as a counter`, asCounter) : null,
  ];
}

/**
 * The first numbers as bars; the table below has them all.
 * @param {Answer} found
 * @param {(value: Cell, unit: string|null) => string} show
 */
function bars({ columns, rows }, show) {
  const numbers = columns.findIndex((one) => one.unit === 'ns');
  const at = numbers >= 0 ? numbers : columns.findIndex((_, k) => rows.some((row) => typeof row[k] === 'number'));
  if (at < 0) return h('p', { class: 'tv-dim' }, 'No column holds numbers.');
  const largest = rows.slice(0, BARS).reduce((most, row) => Math.max(most, Number(row[at])), 0) || 1;
  const label = `${columns[at].name}; the table below has the values`;
  const bar = (/** @type {Cell[]} */ row) => h('div', null,
    h('span', null, cutMiddle(String(row[at ? 0 : 1] ?? ''), 40)),
    h('i', { style: { width: `${Math.max(0, (50 * Number(row[at])) / largest)}%` } }),
    show(row[at], columns[at].unit));
  return h('div', { class: 'tv-bars', role: 'img', 'aria-label': label }, rows.slice(0, BARS).map(bar));
}
