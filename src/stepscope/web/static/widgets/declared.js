/** Columns of a report's rows as the document declares them: titles, order, and how each value is shown. */

import { COLUMNS } from '../core/declared.js';
import { formatPerStep } from '../core/units.js';
import { device, named, ns, number, share, size, where, word, yes } from './columns.js';

/** @typedef {typeof import('../core/declared.js').COLUMNS} Columns */
/**
 * @typedef {{
 *   Kernel: import('../core/document.js').Kernel, KernelLaunch: import('../core/document.js').KernelLaunch,
 *   Copy: import('../core/document.js').Copy, Sync: import('../core/document.js').Sync,
 *   LaunchDelay: import('../core/document.js').LaunchDelay,
 *   CriticalElement: import('../core/document.js').CriticalElement,
 * }} Rows
 */

/** @type {Record<string, <R>(title: string, value: (row: R) => any) => import('./table.js').Column<R>>} */
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
 * @template {keyof Rows} K
 * @template [R=Rows[K]]
 * @param {K} of
 * @param {import('../core/types.js').Report} report
 * @param {{[key in keyof Rows[K]]?: (row: R) => unknown}} [values] by key, what is shown in place of the value itself
 * @param {(row: R) => Rows[K]|undefined} [inside] of a row, the object whose columns these are
 * @returns {import('./table.js').Column<R>[]}
 */
export function declared(of, report, values = {}, inside = (row) => /** @type {any} */ (row)) {
  return COLUMNS[of].flatMap(({ key, title, kind }) => {
    const field = /** @type {keyof Rows[K]} */ (key);
    return key === 'device' ? /** @type {any} */ (device(report))
      : [KINDS[kind](title, values[field] ?? ((/** @type {R} */ row) => inside(row)?.[field]))];
  });
}
