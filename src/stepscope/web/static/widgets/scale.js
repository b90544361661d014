/** Axes: round tick values, and what lies where. */

/**
 * Round values from 0 (or `low`) up to at most `high`, about `most` of them.
 * @param {number} low
 * @param {number} high
 * @param {number} [most]
 * @param {boolean} [binary] whether powers of two are round, as of bytes
 */
export function ticks(low, high, most = 5, binary = false) {
  if (!(high > low)) return [low];
  const raw = (high - low) / most;
  if (binary) return multiples(low, high, 2 ** Math.ceil(Math.log2(raw)));
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= raw) ?? raw;
  return multiples(low, high, step);
}

/** @param {number} low @param {number} high @param {number} step */
function multiples(low, high, step) {
  const out = [];
  for (let at = Math.ceil(low / step); at * step <= high * (1 + 1e-9); at++) out.push(at * step);
  return out;
}

/**
 * Powers of ten from below `low` to above `high`.
 * @param {number} low
 * @param {number} high
 */
export function decades(low, high) {
  const out = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++) out.push(10 ** power);
  return out;
}

/**
 * The number of the bar under `x` of bars that fill `width` alike.
 * @param {number} x
 * @param {number} width
 * @param {number} count
 */
export function barAt(x, width, count) {
  return Math.max(0, Math.min(count - 1, Math.floor((x / width) * count)));
}
