/** The same kernel, or op, of several devices as one row that stands for theirs. */

/**
 * @typedef {{total_ns: number, count: number, share?: number, mean_ns?: number, min_ns?: number,
 *   max_ns?: number}} Summed
 */

/**
 * Rows that are alike together: their times and counts added, the rest where they agree on it. What a row stands for is
 * in `inner`; one alone stays as it is.
 * @template {Summed} R
 * @param {R[]} rows
 * @param {(row: R) => unknown[]} alike
 * @returns {(R & {inner?: R[]})[]} longest first
 */
export function ofAllDevices(rows, alike) {
  /** @type {Map<string, R[]>} */
  const same = new Map();
  for (const row of rows) {
    const key = JSON.stringify(alike(row));
    same.set(key, [...(same.get(key) ?? []), row]);
  }
  return [...same.values()].map((inner) => (inner.length > 1 ? together(inner) : inner[0]))
    .sort((a, b) => b.total_ns - a.total_ns);
}

/**
 * @template {Summed} R
 * @param {R[]} inner
 * @returns {R & {inner: R[]}}
 */
function together(inner) {
  const sum = (/** @type {'total_ns'|'count'|'share'} */ key) => inner.reduce((all, row) => all + (row[key] ?? 0), 0);
  const [total, count, { min_ns: least, max_ns: most }] = [sum('total_ns'), sum('count'), inner[0]];
  return {
    .../** @type {R} */ (Object.fromEntries(Object.entries(inner[0]).map(([key, value]) => {
      const held = (/** @type {R} */ row) => row[/** @type {keyof R} */ (key)];
      return [key, inner.every((row) => JSON.stringify(held(row)) === JSON.stringify(value)) ? value : null];
    }))),
    total_ns: total, count, mean_ns: Math.round(total / count),
    ...(inner[0].share === undefined ? {} : { share: sum('share') }),
    min_ns: least === undefined ? least : Math.min(...inner.map((row) => row.min_ns ?? least)),
    max_ns: most === undefined ? most : Math.max(...inner.map((row) => row.max_ns ?? most)), inner,
  };
}
