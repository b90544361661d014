/** Times as the ruler and the search box write them, and values with any unit. */
import { formatBytes, formatCount, formatNs, formatRate, NOT_RECORDED } from '../core/units.js';

const SCALES = /** @type {[number, string][]} */ ([[1e9, 's'], [1e6, 'ms'], [1e3, 'µs'], [1, 'ns']]);

/**
 * A time with as many digits as its neighbours need to differ.
 * @param {number} ns
 * @param {number} step the distance of the neighbours
 * @returns {string}
 */
export function formatTick(ns, step) {
  const [scale, unit] = SCALES.find(([least]) => Math.max(Math.abs(ns), step) >= least) ?? SCALES[3];
  const digits = Math.max(0, Math.ceil(Math.log10(scale / step) - 1e-9));
  return `${(ns / scale).toFixed(Math.min(digits, 9))} ${unit}`;
}

/**
 * So many of something.
 * @param {number} count
 * @param {string} what
 */
export function counted(count, what) {
  return `${formatCount(count)} ${what}${count === 1 ? '' : 's'}`;
}

/**
 * A value with its unit.
 * @param {number} value
 * @param {string|null} unit
 * @returns {string}
 */
export function formatValue(value, unit) {
  if (!Number.isFinite(value)) return NOT_RECORDED;
  if (unit === 'ns') return formatNs(value);
  if (unit === 'bytes') return formatBytes(value);
  if (unit === 'bytes/s') return formatRate(value, 'B/s');
  if (unit === 'FLOP' || unit === 'FLOP/s') return formatRate(value, unit);
  const text = Number.isInteger(value) ? formatCount(value) : value.toPrecision(6);
  return unit ? `${text} ${unit}` : text;
}

const FACTORS = /** @type {Record<string, number>} */ ({ ns: 1, us: 1e3, 'µs': 1e3, ms: 1e6, s: 1e9 });

/**
 * A duration such as `100us` in ns; a bare number is ns. NaN for anything else.
 * @param {string} text
 * @returns {number}
 */
export function parseNs(text) {
  const match = /^([\d.]+(?:e[+-]?\d+)?)\s*(ns|us|µs|ms|s)?$/i.exec(text.trim());
  return match ? Number(match[1]) * FACTORS[(match[2] ?? 'ns').toLowerCase()] : NaN;
}
