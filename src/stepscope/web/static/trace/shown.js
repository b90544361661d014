/** What the viewer is asked to show, and what it says it shows: small values that fit into an address. */
import { keyOf } from './layout.js';
import { joinedNotes, readNotes, toldNotes } from './notes.js';
import { changedIn, readArrangement } from './rules.js';
import { MODES } from './colours.js';

/** @typedef {import('./app.js').App} App */
/** @typedef {{start_ns: number, dur_ns: number, name?: string|null}} SliceWanted */
/** @typedef {{area: [number, number], tracks: string[]}} AreaWanted tracks by their keys */
/** @typedef {{start_ns: number, end_ns: number, track?: string|null, pin?: string[],
 *   select?: true|SliceWanted|AreaWanted|null, notes?: import('./notes.js').Told[],
 *   layout?: Partial<import('./layout.js').Arrangement>, colour?: string, find?: string,
 *   ask?: string}} Shown what `show` takes and
 *   `state` gives back */

const BLIND = '-blind';
const EVERY = '*';

/**
 * @param {App} app
 * @param {Shown} view
 */
export async function show(app, view) {
  restore(app, view);
  const { meta } = app;
  const named = (/** @type {string} */ text) => meta.tracks.find((track) => (
    keyOf(track) === text || track.id === text || [text, `${track.type} ${text}`].includes(track.label)));
  if (view.pin) {
    const known = new Set(app.rows.map(({ key }) => key));
    const keys = view.pin.flatMap((text) => {
      const track = named(text);
      return track ? [keyOf(track)] : known.has(text) ? [text] : [];
    });
    app.arrange({ pinned: [...new Set([...app.arrangement.pinned, ...keys])] });
  }
  app.view.moved = -Infinity;
  app.view.set(view.start_ns, view.end_ns);
  const track = view.track ? named(view.track) : undefined;
  if (track) app.uncover(/** @type {any} */ ({ track: track.number, lane: track.firstLane, depth: 0 }));
  if (view.select === true) {
    app.selectArea({ begin: view.start_ns, end: view.end_ns, tracks: app.shownTracks });
  } else if (view.select && 'area' in view.select) {
    const [begin, end] = view.select.area;
    const tracks = view.select.tracks[0] === EVERY ? meta.tracks.map(({ number }) => number)
      : view.select.tracks.map(named).flatMap((one) => (one ? [one.number] : []));
    app.selectArea({ begin, end, tracks });
  } else if (view.select) {
    const { start_ns: start, dur_ns: dur, name = null } = view.select;
    const of = track && view.track === keyOf(track) ? track.source : null;
    const found = await app.ask('locate', { start, dur, name, track: track?.id ?? null, source: of });
    if (app.area) app.selectArea(null);
    if (found) app.select(found);
    if (found) app.uncover(found);
    app.measure = { begin: start, end: start + dur };
    app.emit('area');
  }
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
