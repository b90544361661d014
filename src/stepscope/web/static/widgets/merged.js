/** The same kernel of several devices as one row that stands for theirs. */

/** @typedef {Record<string, any>} Row */

/**
 * Kernels of one name and op together: their times and counts added, the rest where they agree on it. What a row stands
 * for is in `inner`; one alone stays as it is.
 * @param {Row[]} rows
 * @returns {Row[]} longest first
 */
export function ofAllDevices(rows) {
  /** @type {Map<string, Row[]>} */
  const same = new Map();
  for (const row of rows) {
    const key = JSON.stringify([row.name, row.op]);
    same.set(key, [...(same.get(key) ?? []), row]);
  }
  return [...same.values()].map((inner) => (inner.length > 1 ? together(inner) : inner[0]))
    .sort((a, b) => b.total_ns - a.total_ns);
}

/** @param {Row[]} inner @returns {Row} */
function together(inner) {
  const sum = (/** @type {string} */ key) => inner.reduce((all, row) => all + row[key], 0);
  const [total, count] = [sum('total_ns'), sum('count')];
  return {
    ...Object.fromEntries(Object.entries(inner[0]).map(([key, value]) => [
      key, inner.every((row) => JSON.stringify(row[key]) === JSON.stringify(value)) ? value : null])),
    total_ns: total, count, share: sum('share'), mean_ns: Math.round(total / count),
    min_ns: Math.min(...inner.map((row) => row.min_ns)), max_ns: Math.max(...inner.map((row) => row.max_ns)), inner,
  };
}
