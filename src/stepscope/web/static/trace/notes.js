/** Notes: named stretches of time, some for now, others kept with the profile. */
import { keep, kept } from './kept.js';

/** @typedef {{time: number, end: number|null, text: string, kept: boolean}} Note */
/** @typedef {[number, number|null, string]} Told a kept note as addresses and files hold it */

const KEPT = 'stepscope-trace-notes';
const MOST_PROFILES = 50;
const MOST_NOTES = 200;
const LONGEST = 200;

/**
 * Notes of somewhere else: whatever is none is left out.
 * @param {unknown} value
 * @returns {Note[]}
 */
export function readNotes(value) {
  if (!Array.isArray(value)) return [];
  return value.slice(0, MOST_NOTES).flatMap((one) => {
    const [time, end, text] = Array.isArray(one) ? one : [];
    if (!Number.isFinite(time) || !(end === null || (Number.isFinite(end) && end >= time))) return [];
    return [{ time, end, text: String(text ?? '').slice(0, LONGEST), kept: true }];
  });
}

/**
 * @param {Note[]} notes
 * @returns {Told[]} those that are kept
 */
export function toldNotes(notes) {
  return notes.filter((note) => note.kept).map(({ time, end, text }) => [time, end, text]);
}

/**
 * Both, each note once, by time.
 * @param {Note[]} notes
 * @param {Note[]} others
 */
export function joinedNotes(notes, others) {
  const name = (/** @type {Note} */ { time, end, text }) => JSON.stringify([time, end, text]);
  const known = new Set(notes.map(name));
  const added = others.filter((note) => !known.has(name(note)));
  return [...notes, ...added].sort((a, b) => a.time - b.time);
}

/**
 * What tells a profile from others: its files and its extent, wherever its report lies.
 * @param {{files: string[], extent_ns: number[]}} header
 * @param {number} slices
 */
export function profileKey({ files, extent_ns: extent }, slices) {
  return JSON.stringify([files, extent, slices]);
}

/** @param {string} profile */
export function keptNotes(profile) {
  return readNotes(all().find(([key]) => key === profile)?.[1]);
}

/**
 * @param {string} profile
 * @param {Note[]} notes
 * @returns {boolean} whether they could be kept
 */
export function keepNotes(profile, notes) {
  const others = all().filter(([key]) => key !== profile).slice(-MOST_PROFILES);
  const told = toldNotes(notes);
  return keep(KEPT, told.length ? [...others, [profile, told]] : others);
}

/** @returns {[string, unknown][]} by profile, the latest last */
function all() {
  const saved = kept(KEPT);
  return Array.isArray(saved) ? saved.filter((one) => Array.isArray(one) && one.length === 2) : [];
}
