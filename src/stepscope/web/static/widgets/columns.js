/** Columns that many tables have. */

import { h } from '../core/dom.js';
import { locator, name, placeName } from '../core/text.js';
import { formatBytes, formatCount, formatNs, formatShare, orDash } from '../core/units.js';

/**
 * @template R
 * @typedef {import('./table.js').Column<R>} Column
 */
/** @typedef {Record<string, any>} Row */

/**
 * A column of numbers.
 * @param {string} title
 * @param {(row: Row) => number|null|undefined} value
 * @param {(value: number) => string} [format]
 * @returns {Column<Row>}
 */
export function number(title, value, format = formatCount) {
  return { title, value, numeric: true, show: (row) => orDash(value(row), format) };
}

/** @param {string} title @param {(row: Row) => number|null|undefined} value */
export function ns(title, value) {
  return { ...number(title, value, formatNs), unit: 'ns' };
}

/** @param {string} title @param {(row: Row) => number|null|undefined} value */
export function size(title, value) {
  return { ...number(title, value, formatBytes), unit: 'bytes' };
}

/**
 * A share, with a bar as long.
 * @param {string} title
 * @param {(row: Row) => number|null|undefined} value
 * @returns {Column<Row>}
 */
export function share(title, value) {
  return {
    title,
    value,
    numeric: true,
    show: (row) => {
      const found = value(row);
      if (found === null || found === undefined) return '–';
      const width = `${Math.min(100, found * 100)}%`;
      return h('span', { class: 'share' }, h('i', { style: { width } }), formatShare(found));
    },
  };
}

/**
 * A column of names of the trace.
 * @param {string} title
 * @param {(row: Row) => string|null|undefined} value
 * @returns {Column<Row>}
 */
export function named(title, value) {
  return { title, value, show: (row) => name(value(row)) };
}

/** @param {string} title @param {(row: Row) => string|null|undefined} value @returns {Column<Row>} */
export function word(title, value) {
  return { title, value };
}

/** @param {string} title @param {(row: Row) => boolean|null|undefined} value @returns {Column<Row>} */
export function yes(title, value) {
  const text = (/** @type {Row} */ row) => {
    const found = value(row);
    return found === null || found === undefined ? null : found ? 'yes' : 'no';
  };
  return { title, value: text };
}

/**
 * The most exact place that was recorded.
 * @param {string} [title]
 * @param {(row: Row) => import('../core/types.js').Where|null} [value]
 * @returns {Column<Row>}
 */
export function where(title = 'where', value = (row) => row.where) {
  return { title, value: (row) => locator(value(row)), show: (row) => placeName(locator(value(row))) };
}

/**
 * Devices, where the profile has more than one.
 * @param {import('../core/types.js').Report} report
 * @returns {Column<Row>[]}
 */
export function device(report) {
  return report.profile.devices.length > 1 ? [number('device', (row) => row.device, String)] : [];
}
