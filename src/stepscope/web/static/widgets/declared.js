/** Columns of a report's rows as the document declares them: titles, order, and how each value is shown. */

import { COLUMNS } from '../core/declared.js';
import { formatPerStep } from '../core/units.js';
import { device, named, ns, number, share, size, where, word, yes } from './columns.js';

/** @typedef {import('./columns.js').Row} Row */
/** @typedef {import('./table.js').Column<Row>} Column */

/** @type {Record<string, (title: string, value: (row: Row) => any) => Column>} */
const KINDS = {
  ns,
  bytes: size,
  share,
  count: number,
  index: (title, value) => number(title, value, String),
  rate: (title, value) => number(title, value, formatPerStep),
  percent: (title, value) => number(title, value, (found) => `${found.toFixed(0)} %`),
  flag: yes,
  name: named,
  text: word,
  words: word,
  list: (title, value) => word(title, (row) => (value(row)?.length ? value(row).join('×') : null)),
  Where: where,
};

/**
 * The columns of one kind of row; of devices where the profile has several.
 * @param {keyof typeof COLUMNS} of
 * @param {import('../core/types.js').Report} report
 * @param {Record<string, (row: Row) => any>} [values] by key, what is shown in place of the value itself
 * @param {(row: Row) => Row|undefined} [inside] of a row, the object whose columns these are
 * @returns {Column[]}
 */
export function declared(of, report, values = {}, inside = (row) => row) {
  return COLUMNS[of].flatMap(({ key, title, kind }) => (
    key === 'device' ? device(report) : [KINDS[kind](title, values[key] ?? ((row) => inside(row)?.[key]))]));
}
