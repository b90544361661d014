/** Ranks and their devices: their names, columns that name them, and what is not known of them. */

import { number } from './columns.js';

/** @typedef {Record<string, any>} Row */

export const NOT_DETERMINED = 'not determined';

/** @param {Row} lane */
export function laneName({ rank, device }) {
  return device === null || device === 0 ? `rank ${rank}` : `rank ${rank}, device ${device}`;
}

/** @returns {import('../widgets/table.js').Column<Row>[]} */
export function lane() {
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
export function told(title, value, format) {
  return { title, value: (row) => value(row) ?? NOT_DETERMINED, numeric: true, show: (row) => {
    const found = value(row);
    return found === null || found === undefined ? NOT_DETERMINED : format(found);
  } };
}
