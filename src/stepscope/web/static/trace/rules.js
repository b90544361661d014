/** Layouts and rules that come from elsewhere: addresses, saved reports, what the browser kept. */
import { emptyArrangement } from './layout.js';

/** @typedef {import('./layout.js').Arrangement} Arrangement */
/** @typedef {{match: string, does: 'pin'|'hide'|'collapse'|'raise'}} Rule what is done to tracks that match, in
 *   every trace that is opened */

export const DEEDS = /** @type {const} */ (['pin', 'hide', 'collapse', 'raise']);
const RAISED = 2;
const MOST_RULES = 50;

/**
 * An arrangement to which rules were applied; what is no regular expression matches nothing.
 * @param {Arrangement} arrangement
 * @param {{key: string, text: string}[]} rows all tracks and counters
 * @param {Rule[]} rules
 * @returns {Arrangement}
 */
export function ruled(arrangement, rows, rules) {
  let made = arrangement;
  for (const { match, does } of rules) {
    const keys = matching(rows, match) ?? [];
    const add = (/** @type {string[]} */ held) => [...new Set([...held, ...keys])];
    if (does === 'pin') made = { ...made, pinned: add(made.pinned) };
    else if (does === 'hide') made = { ...made, hidden: add(made.hidden) };
    else if (does === 'collapse') made = { ...made, collapsed: add(made.collapsed) };
    else made = { ...made, heights: { ...made.heights, ...Object.fromEntries(keys.map((key) => [key, RAISED])) } };
  }
  return made;
}

/**
 * The keys of the rows that match; null where the text is no regular expression.
 * @param {{key: string, text: string}[]} rows
 * @param {string} match
 * @returns {string[]|null}
 */
export function matching(rows, match) {
  try {
    const regex = new RegExp(match, 'i');
    return rows.filter(({ text }) => regex.test(text)).map(({ key }) => key);
  } catch {
    return null;
  }
}

/**
 * @param {unknown} value
 * @returns {Rule[]}
 */
export function readRules(value) {
  if (!Array.isArray(value)) return [];
  return value.filter((one) => typeof one?.match === 'string' && DEEDS.includes(one.does)).slice(0, MOST_RULES)
    .map(({ match, does }) => ({ match, does }));
}

/**
 * An arrangement of somewhere else: what has another form than it should is left out.
 * @param {unknown} value
 * @returns {Arrangement}
 */
export function readArrangement(value) {
  const made = emptyArrangement();
  if (!value || typeof value !== 'object') return made;
  const given = /** @type {Record<string, unknown>} */ (value);
  const told = Object.entries(made).filter(([key, held]) => sameForm(held, given[key]));
  return { ...made, ...Object.fromEntries(told.map(([key]) => [key, given[key]])) };
}

/**
 * @param {unknown} held
 * @param {unknown} given
 */
function sameForm(held, given) {
  if (Array.isArray(held)) return Array.isArray(given) && given.every((one) => typeof one === 'string');
  if (held && typeof held === 'object') {
    return given !== null && typeof given === 'object' && Object.values(given).every((one) => [1, 2, 4].includes(one));
  }
  return typeof given === typeof held;
}

/**
 * What of an arrangement differs from an untouched one; pins are told by themselves.
 * @param {Arrangement} arrangement
 * @returns {Partial<Arrangement>|null}
 */
export function changedIn(arrangement) {
  const plain = /** @type {Record<string, unknown>} */ (emptyArrangement());
  const changed = Object.entries(arrangement)
    .filter(([key, value]) => key !== 'pinned' && JSON.stringify(value) !== JSON.stringify(plain[key]));
  return changed.length ? Object.fromEntries(changed) : null;
}
