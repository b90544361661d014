/** What is asked in SQL, and what of its answers can stand on the timeline. */

/** @typedef {import('./groups.js').Answer} Answer */
/** @typedef {import('./found.js').Row} Row */

const IS_SQL = /^\s*(?:select|with|from|\()/i;

/** @param {string} text */
export function isSql(text) {
  return IS_SQL.test(text);
}

/**
 * The rows of an answer as slices; null where it tells no start and duration. Rows that lack one of them are left out.
 * @param {Answer} found
 * @returns {Row[]|null}
 */
export function slicesOf({ columns, rows }) {
  const at = (/** @type {string} */ wanted) => columns.findIndex(({ name }) => name === wanted);
  const [start, dur, named] = [at('start_ns'), at('dur_ns'), at('name')];
  if (start < 0 || dur < 0) return null;
  const texts = named >= 0 ? named : columns.findIndex((_, k) => typeof rows[0]?.[k] === 'string');
  return rows.flatMap((row) => {
    const [begin, length] = [row[start], row[dur]];
    if (typeof begin !== 'number' || typeof length !== 'number' || length < 0) return [];
    return [/** @type {Row} */ ([begin, length, String(row[texts] ?? '')])];
  });
}
