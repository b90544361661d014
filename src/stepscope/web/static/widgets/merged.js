/** The same kernel of several devices as one row that stands for theirs. */

/** @typedef {import('../core/document.js').Kernel} Kernel */
/** @typedef {Kernel & {inner?: Kernel[]}} Merged */

/**
 * Kernels of one name and op together: their times and counts added, the rest where they agree on it. What a row stands
 * for is in `inner`; one alone stays as it is.
 * @param {Kernel[]} rows
 * @returns {Merged[]} longest first
 */
export function ofAllDevices(rows) {
  /** @type {Map<string, Kernel[]>} */
  const same = new Map();
  for (const row of rows) {
    const key = JSON.stringify([row.name, row.op]);
    same.set(key, [...(same.get(key) ?? []), row]);
  }
  return [...same.values()].map((inner) => (inner.length > 1 ? together(inner) : inner[0]))
    .sort((a, b) => b.total_ns - a.total_ns);
}

/** @param {Kernel[]} inner @returns {Merged} */
function together(inner) {
  const sum = (/** @type {'total_ns'|'count'|'share'} */ key) => inner.reduce((all, row) => all + row[key], 0);
  const [total, count, { min_ns: least, max_ns: most }] = [sum('total_ns'), sum('count'), inner[0]];
  return {
    .../** @type {Kernel} */ (Object.fromEntries(Object.entries(inner[0]).map(([key, value]) => {
      const held = (/** @type {Kernel} */ row) => row[/** @type {keyof Kernel} */ (key)];
      return [key, inner.every((row) => JSON.stringify(held(row)) === JSON.stringify(value)) ? value : null];
    }))),
    total_ns: total, count, share: sum('share'), mean_ns: Math.round(total / count),
    min_ns: least === undefined ? least : Math.min(...inner.map((row) => row.min_ns ?? least)),
    max_ns: most === undefined ? most : Math.max(...inner.map((row) => row.max_ns ?? most)), inner,
  };
}
