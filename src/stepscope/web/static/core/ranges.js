/** Ranges of steps: addresses name them as the job does, pages by their places in the profile. */

/** @typedef {import('./types.js').Step} Step */
/** @typedef {[number, number]} Range */

/**
 * What each step is called: the number that its marker has, or its place where numbers do not rise throughout.
 * @param {Step[]} steps
 */
function names(steps) {
  const numbers = steps.map((step) => step.number ?? step.index);
  return numbers.every((one, at) => !at || one > numbers[at - 1]) ? numbers : steps.map((step) => step.index);
}

/**
 * The places of the steps of a range that an address names; null where none of it is here.
 * @param {Step[]} steps
 * @param {Range|null} range
 * @returns {Range|null}
 */
export function placesOf(steps, range) {
  if (!range) return null;
  const inside = names(steps).map((one) => one >= range[0] && one <= range[1]);
  return inside.includes(true) ? [inside.indexOf(true), inside.lastIndexOf(true)] : null;
}

/**
 * The range as an address names it; `placesOf` gives the places back.
 * @param {Step[]} steps
 * @param {Range|null} range
 * @returns {Range|null}
 */
export function namesOf(steps, range) {
  const named = names(steps);
  return range && [named[range[0]], named[range[1]]];
}
