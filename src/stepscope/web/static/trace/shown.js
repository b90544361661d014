/** What the viewer is asked to show, and what it says it shows: small values that fit into an address. */
import { keyOf } from './layout.js';
import { restoreTracks, toldTracks } from './made.js';
import { joinedNotes, readNotes, toldNotes } from './notes.js';
import { changedIn, readArrangement } from './rules.js';
import { MODES } from './colours.js';

/** @typedef {import('./app.js').App} App */
/** @typedef {{start_ns: number, dur_ns: number, name?: string|null}} SliceWanted */
/** @typedef {{area: [number, number], tracks: string[]}} AreaWanted tracks by their keys */
/** @typedef {{start_ns?: number, end_ns?: number, track?: string|null, pin?: string[],
 *   select?: true|SliceWanted|AreaWanted|null, notes?: import('./notes.js').Told[],
 *   layout?: Partial<import('./layout.js').Arrangement>, colour?: string, find?: string,
 *   ask?: string, tracks?: import('./made.js').Told[]}} Shown what `show` takes and `state` gives back */

const BLIND = '-blind';
const EVERY = '*';

/**
 * @param {App} app
 * @param {Shown} view
 */
export async function show(app, view) {
  if (view.tracks) await restoreTracks(app, view.tracks);
  const { start_ns: from = app.view.begin, end_ns: until = app.view.end, select } = view;
  const track = view.track ? trackNamed(app, view.track) : undefined;
  app.view.together(() => {
    restore(app, view);
    if (view.pin) pin(app, view.pin);
    app.view.set(from, until);
    if (track) app.uncover({ track: track.number, lane: track.firstLane, depth: 0 });
  });
  if (select === true) app.selectArea({ begin: from, end: until, tracks: app.shownTracks });
  else if (select && 'area' in select) selectArea(app, select);
  else if (select) await selectSlice(app, select, track, track && view.track === keyOf(track) ? track.source : null);
}

/**
 * The track of a key, an id or a label, as people and addresses call it.
 * @param {App} app
 * @param {string} text
 */
function trackNamed({ meta }, text) {
  return meta.tracks.find((track) => (
    keyOf(track) === text || track.id === text || [text, `${track.type} ${text}`].includes(track.label)));
}

/**
 * @param {App} app
 * @param {string[]} wanted names of tracks, or keys of counters
 */
function pin(app, wanted) {
  const known = new Set(app.rows.map(({ key }) => key));
  const keys = wanted.flatMap((text) => {
    const track = trackNamed(app, text);
    return track ? [keyOf(track)] : known.has(text) ? [text] : [];
  });
  app.arrange({ pinned: [...new Set([...app.arrangement.pinned, ...keys])] });
}

/**
 * @param {App} app
 * @param {AreaWanted} wanted
 */
function selectArea(app, { area: [begin, end], tracks: names }) {
  const { tracks } = app.meta;
  const chosen = names[0] === EVERY ? tracks : names.flatMap((text) => trackNamed(app, text) ?? []);
  app.selectArea({ begin, end, tracks: chosen.map(({ number }) => number) });
}

/**
 * Select a slice and measure its time: that is told even where no such slice was recorded.
 * @param {App} app
 * @param {SliceWanted} wanted
 * @param {import('./model.js').Track|undefined} track
 * @param {number|null} source null where any may have it
 */
async function selectSlice(app, { start_ns: start, dur_ns: dur, name = null }, track, source) {
  const slice = await app.ask('locate', { start, dur, name, track: track?.id ?? null, source });
  if (app.area) app.selectArea(null);
  if (slice) {
    app.select(slice);
    app.uncover(slice);
  }
  app.measure = { begin: start, end: start + dur };
  app.emit('area');
}

/**
 * Layout, notes, colours and search, where a view tells them.
 * @param {App} app
 * @param {Shown} view
 */
function restore(app, view) {
  if (view.layout) {
    const { pinned, ...layout } = readArrangement(view.layout);
    app.arrange({ ...layout, pinned: [...new Set([...app.arrangement.pinned, ...pinned])] });
  }
  if (view.notes) app.setNotes(joinedNotes(app.notes, readNotes(view.notes)));
  if (view.colour) {
    const palette = view.colour.endsWith(BLIND) ? 'blind' : 'standard';
    const mode = MODES.find((one) => one === view.colour?.replace(BLIND, '')) ?? 'category';
    app.setLook({ mode, palette });
  }
  if (view.ask && view.ask !== app.asked) {
    app.setAsked(view.ask);
    app.open('ask');
  }
  if (view.find && view.find !== app.searched) app.search(view.find);
}

/**
 * @param {App} app
 * @returns {Shown}
 */
export function stateOf(app) {
  const { selection, arrangement, view, area, look } = app;
  const [layout, notes] = [changedIn(arrangement), toldNotes(app.notes)];
  const colour = `${look.mode}${look.palette === 'blind' ? BLIND : ''}`;
  return {
    start_ns: Math.round(view.begin), end_ns: Math.round(view.end),
    ...(area ? { select: { area: [area.begin, area.end], tracks: tracksOf(app, area.tracks) } } : {}),
    ...(selection && !area ? { track: trackOf(app, selection.track),
      select: { start_ns: selection.start, dur_ns: selection.dur, name: selection.name.slice(0, 200) } } : {}),
    ...(arrangement.pinned.length ? { pin: arrangement.pinned } : {}),
    ...(layout ? { layout } : {}), ...(notes.length ? { notes } : {}),
    ...(colour === 'category' ? {} : { colour }), ...(app.searched ? { find: app.searched } : {}),
    ...(app.asked ? { ask: app.asked } : {}),
    ...(app.made.length ? { tracks: toldTracks(app.made) } : {}),
  };
}

/**
 * @param {App} app
 * @param {number[]} tracks
 */
function tracksOf(app, tracks) {
  if (tracks.length === app.meta.tracks.length) return [EVERY];
  return tracks.map((number) => keyOf(app.meta.tracks[number]));
}

/**
 * What names a track; of several runs, which may have tracks alike, with its run.
 * @param {App} app
 * @param {number} number
 */
function trackOf({ meta }, number) {
  const track = meta.tracks[number];
  return meta.sources.length > 1 ? keyOf(track) : track.id;
}
