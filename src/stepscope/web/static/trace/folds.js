/** Streams of one kind as one row: a device may have dozens that hold the same. Pure. */

/** @typedef {import('./layout.js').Row} Row */
/** @typedef {{key: string, label: string, rows: Row[]}} Fold */

/** Fewer streams of a kind stand each for itself. */
const FOLDED_FROM = 4;

/**
 * What the streams of a device that hold the same are called together; null for what is no stream.
 * @param {Pick<import('./model.js').Track, 'type'|'source'|'group'|'holds'>} track
 */
export function foldKey({ type, source, group, holds }) {
  return type === 'stream' ? `${source}/${group}/streams of ${holds ?? ''}` : null;
}

/**
 * The rows that are folded together, by the key of each.
 * @param {Row[]} rows
 * @returns {Map<string, Fold>}
 */
export function foldsOf(rows) {
  /** @type {Map<string, Row[]>} */
  const kinds = new Map();
  for (const row of rows) {
    const key = row.track && foldKey(row.track);
    if (key) kinds.set(key, [...(kinds.get(key) ?? []), row]);
  }
  return new Map([...kinds].filter(([, alike]) => alike.length >= FOLDED_FROM).flatMap(([key, alike]) => {
    const together = { key, label: `${alike.length} streams`, rows: alike };
    return alike.map((row) => /** @type {[string, Fold]} */ ([row.key, together]));
  }));
}

/**
 * The folds that are open so that a track is seen.
 * @param {import('./layout.js').Arrangement} arrangement
 * @param {Pick<import('./model.js').Track, 'type'|'source'|'group'|'holds'>|undefined} track
 */
export function unfoldedFor({ unfolded }, track) {
  const key = track && foldKey(track);
  return key && !unfolded.includes(key) ? [...unfolded, key] : unfolded;
}

/**
 * Fold the streams of the selection, or all, where they are unfolded; else unfold them.
 * @param {import('./app.js').App} app
 */
export function fold(app) {
  const { selection, layout } = app;
  const all = layout.items.flatMap((item) => (item.type === 'fold' ? [item.key] : []));
  const own = selection && foldKey(app.meta.tracks[selection.track]);
  const chosen = own && all.includes(own) ? [own] : all;
  if (!chosen.length) {
    app.say('No device has several streams of one kind');
    return;
  }
  turn(app, chosen);
}

/**
 * Fold streams where all of them are unfolded, else unfold them: each turn can be undone by itself.
 * @param {import('./app.js').App} app
 * @param {string[]} folds
 */
export function turn(app, folds) {
  const { unfolded } = app.arrangement;
  const others = unfolded.filter((key) => !folds.includes(key));
  const isOpen = folds.every((key) => unfolded.includes(key));
  app.view.together(() => app.arrange({ unfolded: isOpen ? others : [...others, ...folds] }));
  app.say(isOpen ? 'Streams of one kind are folded' : 'Streams of one kind are unfolded');
}
