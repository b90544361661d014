/** Columns that many tables have. */

import { h } from '../core/dom.js';
import { locator, name, placeName } from '../core/text.js';
import { formatBytes, formatCount, formatNs, formatShare, orDash } from '../core/units.js';

/**
 * @template R
 * @typedef {import('./table.js').Column<R>} Column
 */

/**
 * A column of numbers.
 * @template R
 * @param {string} title
 * @param {(row: R) => number|null|undefined} value
 * @param {(value: number) => string} [format]
 * @returns {Column<R>}
 */
export function number(title, value, format = formatCount) {
  return { title, value, numeric: true, show: (row) => orDash(value(row), format) };
}

/**
 * @template R
 * @param {string} title
 * @param {(row: R) => number|null|undefined} value
 * @returns {Column<R>}
 */
export function ns(title, value) {
  return { ...number(title, value, formatNs), unit: 'ns' };
}

/**
 * @template R
 * @param {string} title
 * @param {(row: R) => number|null|undefined} value
 * @returns {Column<R>}
 */
export function size(title, value) {
  return { ...number(title, value, formatBytes), unit: 'bytes' };
}

/**
 * A share, with a bar as long.
 * @template R
 * @param {string} title
 * @param {(row: R) => number|null|undefined} value
 * @returns {Column<R>}
 */
export function share(title, value) {
  return {
    title,
    value,
    numeric: true,
    show: (row) => {
      const cell = value(row);
      if (cell === null || cell === undefined) return '–';
      const width = `${Math.min(100, cell * 100)}%`;
      return h('span', { class: 'share' }, h('i', { style: { width } }), formatShare(cell));
    },
  };
}

/**
 * A column of names of the trace.
 * @template R
 * @param {string} title
 * @param {(row: R) => string|null|undefined} value
 * @returns {Column<R>}
 */
export function named(title, value) {
  return { title, value, names: true, show: (row) => name(value(row)) };
}

/**
 * @template R
 * @param {string} title
 * @param {(row: R) => string|null|undefined} value
 * @returns {Column<R>}
 */
export function word(title, value) {
  return { title, value };
}

/**
 * @template R
 * @param {string} title
 * @param {(row: R) => boolean|null|undefined} value
 * @returns {Column<R>}
 */
export function yes(title, value) {
  const text = (/** @type {R} */ row) => {
    const cell = value(row);
    return cell === null || cell === undefined ? null : cell ? 'yes' : 'no';
  };
  return { title, value: text };
}

/**
 * Extents along axes: 16×16.
 * @template R
 * @param {string} title
 * @param {(row: R) => number[]|null|undefined} value
 * @returns {Column<R>}
 */
export function extents(title, value) {
  return word(title, (row) => value(row)?.join('×') || null);
}

/**
 * The most exact place that was recorded.
 * @template R
 * @param {string} title
 * @param {(row: R) => import('../core/types.js').Where|null} value
 * @returns {Column<R>}
 */
export function where(title, value) {
  return { title, value: (row) => locator(value(row)), show: (row) => placeName(locator(value(row))) };
}

/**
 * Devices, where the profile has more than one.
 * @template {{device?: number|null}} R
 * @param {import('../core/types.js').Report} report
 * @returns {Column<R>[]}
 */
export function device(report) {
  return report.profile.devices.length > 1 ? [number('device', (row) => row.device, String)] : [];
}
