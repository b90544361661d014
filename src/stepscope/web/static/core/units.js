/** Times and sizes as text: the same words as `stepscope.units`, which a test compares. */

export const NOT_RECORDED = 'not recorded';

/** In place of a value that was not recorded, in a table. */
export const ABSENT = '–';

/**
 * A number with so many decimals, ties to the even neighbour as Python rounds them.
 * @param {number} value
 * @param {number} digits
 */
export function fixed(value, digits) {
  const isTie = Number.isInteger(value * 2 ** (digits + 1)) && Math.abs((value * 10 ** digits) % 1) === 0.5;
  if (!isTie) return value.toFixed(digits);
  const scaled = value * 10 ** digits;
  const low = Math.floor(scaled);
  return ((low % 2 === 0 ? low : low + 1) / 10 ** digits).toFixed(digits);
}

/** @param {number} value */
function threeDigits(value) {
  const size = Math.abs(value);
  if (size >= 99.95) return fixed(value, 0);
  return fixed(value, size >= 9.995 ? 1 : 2);
}

/**
 * A duration with three significant digits.
 * @param {number|null|undefined} ns
 */
export function formatNs(ns) {
  if (ns === null || ns === undefined) return NOT_RECORDED;
  const size = Math.abs(ns);
  if (size < 1e3) return `${ns} ns`;
  if (size < 999_500) return `${threeDigits(ns / 1e3)} µs`;
  if (size < 999_500_000) return `${threeDigits(ns / 1e6)} ms`;
  return `${threeDigits(ns / 1e9)} s`;
}

/**
 * A difference of durations, with its sign.
 * @param {number} ns
 */
export function formatSigned(ns) {
  return `${ns > 0 ? '+' : ns < 0 ? '−' : ''}${formatNs(Math.abs(ns))}`;
}

/**
 * A size in binary units.
 * @param {number|null|undefined} size
 */
export function formatBytes(size) {
  if (size === null || size === undefined) return NOT_RECORDED;
  let value = size;
  for (const unit of ['B', 'KiB', 'MiB', 'GiB']) {
    if (Math.abs(value) < 1023.5) return unit === 'B' ? `${size} B` : `${threeDigits(value)} ${unit}`;
    value /= 1024;
  }
  return `${threeDigits(value)} TiB`;
}

/**
 * A rate in decimal units.
 * @param {number} perSecond
 * @param {string} unit
 */
export function formatRate(perSecond, unit) {
  let value = perSecond;
  for (const prefix of ['', 'k', 'M', 'G', 'T']) {
    if (value < 999.5) return `${threeDigits(value)} ${prefix}${unit}`;
    value /= 1000;
  }
  return `${threeDigits(value)} P${unit}`;
}

/**
 * A share of one as a percentage; one too small to show is not rounded to nothing.
 * @param {number|null|undefined} share
 */
export function formatShare(share) {
  if (share === null || share === undefined) return NOT_RECORDED;
  const percent = share * 100;
  if (percent === 0) return '0 %';
  if (Math.abs(percent) < 0.1) return '<0.1 %';
  return `${fixed(percent, Math.abs(percent) < 99.95 ? 1 : 0)} %`;
}

/** @param {number|null|undefined} count */
export function formatCount(count) {
  return count === null || count === undefined ? NOT_RECORDED : count.toLocaleString('en-US');
}

/**
 * A number per step, with four significant digits.
 * @param {number|null|undefined} value
 */
export function formatPerStep(value) {
  return value === null || value === undefined ? ABSENT : String(Number(value.toPrecision(4)));
}

/**
 * The value by a format, or a dash where it is absent.
 * @template T
 * @param {T|null|undefined} value
 * @param {(value: T) => string} format
 */
export function orDash(value, format) {
  return value === null || value === undefined ? ABSENT : format(value);
}
