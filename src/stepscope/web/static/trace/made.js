/** Tracks that queries made: put above the others, told in addresses and saved reports, taken away. */
import { QUERIES } from './found.js';
import { isSql, slicesOf } from './sql.js';

/** @typedef {import('./app.js').App} App */
/** @typedef {import('./found.js').Wanted} Wanted */
/** @typedef {{text: string, label: string, rows?: import('./found.js').Row[]}} Told as addresses and files hold it */

const [MOST, LONGEST, MOST_ROWS] = [20, 1_000, 5_000];

/**
 * Put what a query found above the tracks.
 * @param {App} app
 * @param {Wanted} one
 */
export async function addTrack(app, one) {
  const errors = await put(app, [...app.made.filter(({ text }) => text !== one.text), one]);
  const keys = app.rows.map(({ key }) => key).filter((key) => key.endsWith(`/${QUERIES}/${one.text}`));
  const pinned = [...new Set([...app.arrangement.pinned, ...keys])];
  app.view.together(() => app.arrange({ pinned }));
  app.say(errors[0] ?? (keys.length ? `${one.label} is a track above the others` : 'Nothing was found to show'));
}

/**
 * @param {App} app
 * @param {string} gone the query whose track goes
 */
export async function removeTrack(app, gone) {
  await put(app, app.made.filter(({ text }) => text !== gone));
  app.say('The track of the query is removed');
}

/**
 * The tracks that a view tells, beside those that are there. SQL is asked again where what it found is not told.
 * @param {App} app
 * @param {unknown} told
 */
export async function restoreTracks(app, told) {
  const added = readTold(told).filter(({ text }) => app.made.every((one) => one.text !== text));
  if (!added.length) return;
  const made = await Promise.all(added.map(async (one) => {
    if (one.rows || !isSql(one.text)) return { ...one, rows: one.rows ?? null };
    const rows = app.sql && slicesOf(await app.sql.query(one.text));
    if (!rows) throw new Error('the track of a query in SQL needs stepscope view');
    return { ...one, rows };
  }).map((one) => one.catch((error) => {
    app.say(error.message);
    return null;
  })));
  const known = new Set(app.made.map(({ text }) => text));
  await put(app, [...app.made, ...made.flatMap((one) => (one && !known.has(one.text) ? [one] : []))]);
}

/**
 * What a view tells of its tracks.
 * @param {Wanted[]} made
 * @returns {Told[]}
 */
export function toldTracks(made) {
  return made.map(({ text, label, rows }) => ({ text, label, ...(rows ? { rows } : {}) }));
}

/**
 * Tracks of somewhere else: whatever is none is left out.
 * @param {unknown} value
 * @returns {Told[]}
 */
export function readTold(value) {
  if (!Array.isArray(value)) return [];
  return value.slice(0, MOST).flatMap((one) => {
    const { text, label, rows } = one ?? {};
    if (typeof text !== 'string' || typeof label !== 'string' || text.length > LONGEST) return [];
    return [{ text, label: label.slice(0, LONGEST), ...(Array.isArray(rows) ? { rows: readRows(rows) } : {}) }];
  });
}

/** @param {unknown[]} rows @returns {import('./found.js').Row[]} */
function readRows(rows) {
  return rows.slice(0, MOST_ROWS).flatMap((row) => {
    const [start, dur, name] = Array.isArray(row) ? row : [];
    return Number.isFinite(start) && Number.isFinite(dur) && dur >= 0 ? [[start, dur, String(name ?? '')]] : [];
  });
}

/**
 * @param {App} app
 * @param {Wanted[]} wanted
 * @returns {Promise<string[]>} what is wrong with them
 */
async function put(app, wanted) {
  app.letGo();
  const answer = await app.ask('found', { wanted });
  app.made = wanted.filter((_, at) => answer.errors[at] === null);
  app.hold(answer);
  return answer.errors.flatMap((error) => error ?? []);
}
