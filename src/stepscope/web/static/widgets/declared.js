/** Columns of a report's rows as the document declares them: titles, order, and how each value is shown. */

import { COLUMNS } from '../core/declared.js';
import { formatPerStep } from '../core/units.js';
import { device, extents, named, ns, number, share, size, where, word, yes } from './columns.js';

/** @typedef {typeof import('../core/declared.js').COLUMNS} Columns */
/**
 * @typedef {{
 *   Kernel: import('../core/document.js').Kernel, KernelLaunch: import('../core/document.js').KernelLaunch,
 *   Copy: import('../core/document.js').Copy, Sync: import('../core/document.js').Sync,
 *   LaunchDelay: import('../core/document.js').LaunchDelay,
 *   CriticalElement: import('../core/document.js').CriticalElement,
 * }} Rows
 */

/**
 * `value` gives what the column's kind shows.
 * @type {Record<string, <R>(title: string, value: (row: R) => never) => import('./table.js').Column<R>>}
 */
const KINDS = {
  ns,
  bytes: size,
  share,
  count: number,
  index: (title, value) => number(title, value, String),
  rate: (title, value) => number(title, value, formatPerStep),
  percent: (title, value) => number(title, value, (amount) => `${amount.toFixed(0)} %`),
  flag: yes,
  name: named,
  text: word,
  words: word,
  list: extents,
  Where: where,
};

/**
 * The columns of one kind of row; of devices where the profile has several.
 * @template {keyof Rows} K
 * @template [R=Rows[K]]
 * @param {K} of
 * @param {import('../core/types.js').Report} report
 * @param {{[key in keyof Rows[K]]?: (row: R) => unknown}} [values] by key, what is shown in place of the value itself
 * @param {(row: R) => Rows[K]|undefined} [inside] of a row, the object whose columns these are
 * @returns {import('./table.js').Column<R>[]}
 */
export function declared(of, report, values = {}, inside = same) {
  /** @type {unknown} Of rows that have a device, which the declaration knows. */
  const devices = device(report);
  return COLUMNS[of].flatMap(({ key, title, kind }) => {
    if (key === 'device') return /** @type {import('./table.js').Column<R>[]} */ (devices);
    const field = /** @type {keyof Rows[K]} */ (key);
    const value = values[field] ?? ((/** @type {R} */ row) => inside(row)?.[field]);
    return [KINDS[kind](title, /** @type {(row: R) => never} */ (value))];
  });
}

/** A row that is itself the object whose columns are shown. @type {(row: unknown) => never} */
const same = (row) => /** @type {never} */ (row);
