/** Ranks and their devices: their names, columns that name them, and what is not known of them. */

import { number } from './columns.js';

/** @typedef {{rank: number|null, device: number|null}} Lane */

export const NOT_DETERMINED = 'not determined';

/** @param {Lane} lane */
export function laneName({ rank, device }) {
  return device === null || device === 0 ? `rank ${rank}` : `rank ${rank}, device ${device}`;
}

/** @returns {import('../widgets/table.js').Column<Lane>[]} */
export function lane() {
  return [
    number('rank', (row) => row.rank, String),
    number('device', (row) => row.device || null, String),
  ];
}

/**
 * A column that says where the report does not know.
 * @template R
 * @param {string} title
 * @param {(row: R) => number|null|undefined} value
 * @param {(value: number) => string} format
 * @returns {import('../widgets/table.js').Column<R>}
 */
export function told(title, value, format) {
  return { title, value: (row) => value(row) ?? NOT_DETERMINED, numeric: true, show: (row) => {
    const cell = value(row);
    return cell === null || cell === undefined ? NOT_DETERMINED : format(cell);
  } };
}
