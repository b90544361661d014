/** Queries that the reader has named: they stand in the address, and by it in a saved report. */

/** @typedef {{name: string, text: string}} Query */
/** @typedef {{list: () => Query[], set: (queries: Query[]) => void}} Queries */

const [MOST, LONGEST_NAME, LONGEST_TEXT] = [20, 60, 1000];

/**
 * @param {string|undefined} told as `toldQueries` tells them, or anything else
 * @returns {Query[]}
 */
export function readQueries(told) {
  try {
    const all = Object.entries(JSON.parse(told ?? '{}'));
    return all.filter(([name, text]) => name && typeof text === 'string').slice(0, MOST)
      .map(([name, text]) => ({ name: name.slice(0, LONGEST_NAME), text: String(text).slice(0, LONGEST_TEXT) }));
  } catch {
    return [];
  }
}

/** @param {Query[]} queries */
export function toldQueries(queries) {
  return JSON.stringify(Object.fromEntries(queries.slice(-MOST).map(({ name, text }) => (
    [name.slice(0, LONGEST_NAME), text.slice(0, LONGEST_TEXT)]))));
}
