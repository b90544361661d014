/**
 * Asking the trace: SQL by the server where there is one, else groups of slices; as a table, a chart and on the tracks.
 */
import { h, put } from '../core/dom.js';
import { formatCount, formatNs } from '../core/units.js';
import { table } from '../widgets/table.js';
import { FIELDS } from './query.js';
import { GROUPS, parseAsked } from './groups.js';
import { cutMiddle } from './names.js';

/** @typedef {import('./app.js').App} App */
/** @typedef {import('./groups.js').Answer} Answer */
/** @typedef {import('./groups.js').Cell} Cell */

const IS_SQL = /^\s*(?:select|with|from|\()/i;
const WORDS = ['SELECT', 'FROM', 'WHERE', 'GROUP BY', 'ORDER BY', 'LIMIT', 'COUNT(*)', 'SUM(', 'AVG(', 'MAX(', 'DESC'];
const OFFERED = 8;
const BARS = 15;
const FIRST = 'kind:kernel group by name';
const FIRST_SQL = 'SELECT name, COUNT(*) AS n, SUM(dur_ns) AS total_ns FROM ops GROUP BY name ORDER BY total_ns DESC';

/** @param {App} app */
export async function askTab(app) {
  const { sql } = app;
  const first = sql ? FIRST_SQL : FIRST;
  const input = h('textarea', { rows: 2, spellcheck: 'false', class: 'tv-ask', 'aria-label': 'Query',
    placeholder: first });
  input.value = app.asked || first;
  const offers = h('div', { class: 'tv-offers', role: 'group', 'aria-label': 'Completions' });
  const result = h('div', { class: 'tv-answer', role: 'region', 'aria-label': 'Answer' });
  const words = sql ? await sqlWords(sql) : [...FIELDS.map((field) => `${field}:`), 'group by', 'pivot', ...GROUPS];
  const run = async () => {
    app.setAsked(input.value);
    put(result, h('p', { class: 'tv-dim', role: 'status' }, 'Asking …'));
    put(result, await answered(app, input.value));
  };
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
    const found = typed ? words.filter((word) => word.toLowerCase().startsWith(typed) && word.toLowerCase() !== typed)
      .sort((a, b) => a.length - b.length).slice(0, OFFERED) : [];
    put(offers, found.map((word) => h('button', { type: 'button', onclick: () => complete(word) }, word)));
  };
  input.addEventListener('input', offer);
  input.addEventListener('keydown', (event) => {
    const next = offers.querySelector('button');
    if (event.key === 'Enter' && !event.shiftKey) run();
    else if (event.key === 'Tab' && next && !event.shiftKey) complete(next.textContent ?? '');
    else return;
    event.preventDefault();
  });
  if (app.asked) run();
  return [
    h('div', { class: 'tv-actions' }, input, h('button', { type: 'button', onclick: run }, 'Ask')),
    offers,
    h('p', { class: 'tv-dim' }, sql
      ? 'SELECT over the tables of the profile, as `stepscope query` takes it; or a search, group by and pivot.'
      : 'A search, then `group by` and `pivot`. `stepscope view` and `stepscope query` take SQL.'),
    result,
  ];
}

/** Tables, columns and words of SQL. @param {NonNullable<App['sql']>} sql */
async function sqlWords(sql) {
  const tables = await sql.tables();
  return [...new Set([...Object.keys(tables), ...Object.values(tables).flat(), ...WORDS])];
}

/**
 * @param {App} app
 * @param {string} text
 * @returns {Promise<Node[]>}
 */
async function answered(app, text) {
  try {
    const bySql = IS_SQL.test(text);
    if (bySql && !app.sql) throw new Error('a saved report is not asked in SQL: open the profile with stepscope view');
    /** @type {Answer} */
    const found = bySql && app.sql ? await app.sql.query(text) : await app.ask('groups', { text });
    if (found.error) throw new Error(found.error);
    return shown(app, text, found, bySql);
  } catch (error) {
    return [h('p', { class: 'tv-bad', role: 'alert' }, /** @type {Error} */ (error).message)];
  }
}

/**
 * @param {App} app
 * @param {string} text
 * @param {Answer} found
 * @param {boolean} bySql
 */
function shown(app, text, found, bySql) {
  const show = (/** @type {Cell} */ value, /** @type {string|null} */ unit) => (
    typeof value !== 'number' ? String(value ?? '–') : unit === 'ns' ? formatNs(value)
      : Number.isInteger(value) ? formatCount(value) : String(value));
  const [start, dur] = ['start_ns', 'dur_ns'].map((name) => found.columns.findIndex((one) => one.name === name));
  const chart = h('div', null);
  const onTracks = () => {
    if (!bySql) app.search(parseAsked(text).search);
    else app.setMarks(found.rows.map((row) => [Number(row[start]), Number(row[dur] ?? 0)]));
  };
  const all = found.total && found.total > found.rows.length ? ` of ${formatCount(found.total)}` : '';
  return [
    h('div', { class: 'tv-actions' }, h('span', null, `${formatCount(found.rows.length)}${all} rows`),
      h('button', { type: 'button', onclick: () => put(chart, bars(found, show)) }, 'Chart'),
      bySql && start < 0 ? null : h('button', { type: 'button', onclick: onTracks }, 'Show on the tracks')),
    chart,
    table({
      label: 'Answer',
      rows: found.rows,
      columns: found.columns.map(({ name, unit }, at) => ({ title: name, value: (/** @type {Cell[]} */ row) => row[at],
        show: (/** @type {Cell[]} */ row) => cutMiddle(show(row[at], unit), 90),
        numeric: found.rows.some((row) => typeof row[at] === 'number') })),
    }),
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
