/** A table that sorts, filters and copies as CSV. */

import { copyText, h, put } from '../core/dom.js';
import { ABSENT } from '../core/units.js';
import { name, shorten, toldApart } from '../core/text.js';

const FIRST_ROWS = 100;

/**
 * @template R
 * @typedef {{
 *   title: string,
 *   value: (row: R) => string|number|boolean|null|undefined,
 *   show?: (row: R) => Node|string,
 *   numeric?: boolean,
 *   wide?: boolean,
 *   unit?: string,
 *   names?: boolean,
 * }} Column `names`: of a trace, of which long ones lose what they have in common;
 *   `unit`: of `value`, for copies; `value` is what sorts, filters and is copied; `show` what is seen.
 */

/**
 * @template R
 * @param {{
 *   label: string,
 *   columns: Column<R>[],
 *   rows: R[],
 *   note?: string|null,
 *   filter?: string,
 *   onRow?: (row: R) => void,
 *   rowLabel?: string,
 *   inner?: (row: R) => R[],
 *   times?: (row: R) => number|undefined,
 * }} given `filter` is what the filter begins with; `inner`: what a row stands for, shown below it when it is
 *   opened, and `times` how many that is where not all are there.
 */
export function table(given) {
  const { label, rows, onRow } = given;
  const all = given.inner ? rows.flatMap((row) => [row, ...given.inner?.(row) ?? []]) : rows;
  const columns = told(given.columns, rows).map((column) => (column.names ? withNames(column, all) : column));
  const state = { sort: -1, down: true, filter: given.filter ?? '', all: false };
  const body = h('tbody', null);
  const count = h('span', { class: 'dim', role: 'status' });
  const more = h('button', { type: 'button', class: 'more', onclick: () => { state.all = true; draw(); } });
  const heads = columns.map((column, at) => head(column, () => sortBy(at)));

  const chosen = () => {
    const kept = filtered(columns, rows, state.filter);
    return state.sort < 0 ? kept : sorted(kept, columns[state.sort], state.down);
  };
  /** @param {number} at */
  const sortBy = (at) => {
    state.down = state.sort === at ? !state.down : Boolean(columns[at].numeric);
    state.sort = at;
    heads.forEach((one, index) => {
      one.setAttribute('aria-sort', index !== at ? 'none' : state.down ? 'descending' : 'ascending');
    });
    draw();
  };
  const draw = (whole = state.all) => {
    const kept = chosen();
    const first = whole ? kept : kept.slice(0, FIRST_ROWS);
    put(body, first.map((row) => withInner(given, columns, row)));
    count.textContent = kept.length === rows.length ? '' : `${kept.length} of ${rows.length} rows`;
    more.hidden = first.length === kept.length;
    more.textContent = `Show all ${kept.length} rows`;
  };
  const filter = h('input', {
    type: 'search',
    class: 'filter',
    placeholder: 'Filter',
    'aria-label': `Filter ${label}`,
    value: state.filter,
    oninput: () => { state.filter = filter.value; draw(); },
  });
  const acts = onRow ? h('th', { scope: 'col' }, h('span', { class: 'sr' }, given.rowLabel ?? 'Open')) : null;
  draw();
  wholeInPrint(body, (whole) => draw(whole || state.all));
  return h(
    'div',
    { class: 'tabled' },
    h('div', { class: 'tools' }, rows.length < 6 && !given.filter ? null : filter, count,
      copier(() => csv(columns, chosen()))),
    given.note ? h('p', { class: 'note' }, given.note) : null,
    framed(label, h('thead', null, h('tr', null, heads, acts)), body),
    more,
  );
}

/**
 * The button that copies a table.
 * @param {() => string} text
 */
function copier(text) {
  const copy = h('button', { type: 'button', onclick: async () => {
    const done = await copyText(text());
    copy.textContent = done ? 'Copied' : 'Not allowed here';
    setTimeout(() => { copy.textContent = 'Copy CSV'; }, 1500);
  } }, 'Copy CSV');
  return copy;
}

/**
 * A table that is moved sideways where it is wider than its room, and looks so.
 * @param {string} label
 * @param {...Node} parts
 */
function framed(label, ...parts) {
  const frame = h(
    'div',
    { class: 'scroll', tabindex: 0, role: 'group', 'aria-label': label },
    h('table', { 'aria-label': label }, parts),
  );
  new ResizeObserver(() => {
    frame.classList.toggle('sideways', frame.children[0].scrollWidth > frame.clientWidth + 1);
  }).observe(frame);
  return frame;
}

/**
 * A table on the page is whole while it is printed.
 * @param {Element} body
 * @param {(whole: boolean) => void} draw
 */
function wholeInPrint(body, draw) {
  const print = (/** @type {Event} */ event) => {
    if (body.isConnected) draw(/** @type {CustomEvent<boolean>} */ (event).detail);
    else document.removeEventListener('stepscope:whole', print);
  };
  document.addEventListener('stepscope:whole', print);
}

/**
 * Columns that some row has a value for.
 * @template R
 * @param {Column<R>[]} columns
 * @param {R[]} rows
 */
function told(columns, rows) {
  return columns.filter((column) => rows.some((row) => !absent(column.value(row))));
}

/**
 * A column of names that cannot be taken for each other.
 * @template R
 * @param {Column<R>} column
 * @param {R[]} rows
 * @returns {Column<R>}
 */
function withNames(column, rows) {
  const valueOf = (/** @type {R} */ row) => /** @type {string|null|undefined} */ (column.value(row));
  const apart = toldApart(rows.flatMap((row) => valueOf(row) ?? []));
  return apart.size ? { ...column, show: (row) => {
    const value = valueOf(row);
    const shown = apart.get(value ?? '');
    return shown || !column.show ? name(value, 'name', shown) : column.show(row);
  } } : column;
}

/** @param {unknown} value */
function absent(value) {
  return value === null || value === undefined || value === '';
}

/**
 * @template R
 * @param {Column<R>} column
 * @param {() => void} sort
 */
function head(column, sort) {
  const button = h('button', { type: 'button', onclick: sort }, column.title);
  return h('th', { scope: 'col', class: column.numeric ? 'num' : '', 'aria-sort': 'none' }, button);
}

/**
 * A row; a button in it shows those that it stands for below it.
 * @template R
 * @param {{onRow?: (row: R) => void, rowLabel?: string, inner?: (row: R) => R[],
 *   times?: (row: R) => number|undefined}} given
 * @param {Column<R>[]} columns
 * @param {R} row
 */
function withInner({ onRow, rowLabel, inner, times }, columns, row) {
  const main = line(columns, row, onRow, rowLabel);
  const others = inner?.(row) ?? [];
  if (!others.length) return main;
  /** @type {HTMLElement[]} */
  let shown = [];
  const toggle = h('button', { type: 'button', class: 'opens', 'aria-expanded': 'false', onclick: () => {
    const shows = !shown.length;
    toggle.setAttribute('aria-expanded', String(shows));
    for (const one of shown) one.remove();
    shown = shows ? others.map((one) => line(columns, one, onRow, rowLabel)) : [];
    for (const one of shown) one.className = 'inner';
    main.after(...shown);
  } }, `× ${times?.(row) ?? others.length}`);
  main.cells[0].prepend(toggle);
  return main;
}

/**
 * @template R
 * @param {Column<R>[]} columns
 * @param {R} row
 * @param {((row: R) => void)|undefined} onRow
 * @param {string|undefined} rowLabel
 */
function line(columns, row, onRow, rowLabel) {
  return h(
    'tr',
    null,
    columns.map((column) => {
      const value = column.value(row);
      const content = column.show ? column.show(row) : absent(value) ? ABSENT : shorten(String(value));
      return h('td', { class: `${column.numeric ? 'num' : ''} ${column.wide ? 'wide' : ''}` }, content);
    }),
    onRow
      ? h('td', { class: 'act' }, h('button', { type: 'button', onclick: () => onRow(row) }, rowLabel ?? 'Open'))
      : null,
  );
}

/**
 * Rows that hold each word of the filter.
 * @template R
 * @param {Column<R>[]} columns
 * @param {R[]} rows
 * @param {string} filter
 */
function filtered(columns, rows, filter) {
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  return words.length ? rows.filter((row) => matches(columns, row, words)) : rows;
}

/**
 * @template R
 * @param {Column<R>[]} columns
 * @param {R} row
 * @param {string[]} words all of which some cell must hold
 */
function matches(columns, row, words) {
  const text = columns.map((column) => String(column.value(row) ?? '').slice(0, 4096)).join('\u0000').toLowerCase();
  return words.every((word) => text.includes(word));
}

/**
 * Rows in the order of a column, absent values last.
 * @template R
 * @param {R[]} rows
 * @param {Column<R>} column
 * @param {boolean} down
 */
export function sorted(rows, column, down) {
  const keyed = rows.map((row) => ({ row, value: column.value(row) }));
  keyed.sort((a, b) => {
    if (absent(a.value) || absent(b.value)) return Number(absent(a.value)) - Number(absent(b.value));
    const order = compare(a.value, b.value);
    return down ? -order : order;
  });
  return keyed.map(({ row }) => row);
}

/** @param {unknown} a @param {unknown} b */
function compare(a, b) {
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  return String(a).localeCompare(String(b), 'en', { numeric: true });
}

/**
 * Rows as CSV (RFC 4180), values unrounded. Text that a spreadsheet would run as a formula gets a quote before it.
 * @template R
 * @param {Column<R>[]} columns
 * @param {R[]} rows
 */
export function csv(columns, rows) {
  const lines = [columns.map(({ title, unit }) => field(unit ? `${title} (${unit})` : title))];
  for (const row of rows) lines.push(columns.map((column) => field(column.value(row))));
  return lines.map((cells) => `${cells.join(',')}\r\n`).join('');
}

/** @param {unknown} value */
function field(value) {
  if (value === null || value === undefined) return '';
  if (typeof value === 'number') return String(value);
  const text = /^[=+\-@\t\r]/.test(String(value)) ? `'${value}` : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
