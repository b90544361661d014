/** Rows too many to be seen: those that stand out keep rows of their own, neighbours are shown together. */

/** Beyond the median of all rows by so many median deviations a row stands out. */
const FAR = 5;

/** @typedef {{first: number, last: number}} Band places of rows, both inclusive; alone where they are one place */

/**
 * Neighbours together, in bands of equal size (a power of two), no more than `most` of them.
 * @param {number} count
 * @param {number} most
 * @returns {Band[]}
 */
export function bands(count, most) {
  const size = count <= most ? 1 : 2 ** Math.ceil(Math.log2(count / most));
  return Array.from({ length: Math.ceil(count / size) }, (_, at) => (
    { first: at * size, last: Math.min(count, (at + 1) * size) - 1 }));
}

/**
 * Places of the rows that are shown by themselves: those that are named, then those whose mean is farthest above the
 * median of all.
 * @param {(number|null)[][]} values
 * @param {number[]} named
 * @param {number} most
 */
export function standingOut(values, named, most) {
  const means = values.map((row) => meanOf(row));
  const middle = median(means);
  const usual = median(means.map((one) => Math.abs(one - middle)));
  const far = means.map((mean, at) => ({ at, mean }))
    .filter(({ at, mean }) => mean - middle > FAR * usual && !named.includes(at))
    .sort((a, b) => b.mean - a.mean).map(({ at }) => at);
  return [...named, ...far].slice(0, most).sort((a, b) => a - b);
}

/**
 * Of a band the place with the largest value in a column; its first where none has one.
 * @param {(number|null)[][]} values
 * @param {Band} band
 * @param {number} column
 */
export function largest(values, { first, last }, column) {
  let best = first;
  for (let at = first + 1; at <= last; at++) {
    if ((values[at][column] ?? -1) > (values[best][column] ?? -1)) best = at;
  }
  return best;
}

/** @param {(number|null)[]} row */
function meanOf(row) {
  const known = row.filter((value) => value !== null);
  return known.length ? known.reduce((sum, value) => sum + value, 0) / known.length : 0;
}

/** @param {number[]} values */
function median(values) {
  const ordered = [...values].sort((a, b) => a - b);
  return ordered[ordered.length >> 1] ?? 0;
}
