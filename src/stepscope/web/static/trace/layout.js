/** Where tracks stand: their order, which are pinned, hidden or collapsed, and how high. Pure. */

import { foldsOf } from './folds.js';

/** @typedef {import('./model.js').Track} Track */
/** @typedef {{number: number, label: string, group: string, unit: string|null, source: number, low: number,
 *   high: number}} CounterAbout */
/** @typedef {{pinned: string[], hidden: string[], collapsed: string[], expanded: string[], closed: string[],
 *   heights: Record<string, number>, order: string[], filter: string, log: string[], delta: string[], rate: string[],
 *   shared: boolean, unfolded: string[]}} Arrangement keys are those of `keyOf`; `closed` holds groups, `unfolded`
 *   folds of streams */
/** @typedef {{key: string, type: 'group'|'track'|'counter'|'fold', y: number, height: number, laneHeight: number,
 *   lanes: number[], collapsed: boolean, pinned: boolean, track: Track|null, tracks: Track[],
 *   counter: CounterAbout|null, label: string, group: string, closed: boolean}} Item `tracks`: all that its lanes are
 *   of */
/** @typedef {{items: Item[], pinnedHeight: number, height: number}} Layout heights in CSS pixels */

export const LANE_PIXELS = 16;
export const GROUP_PIXELS = 22;
export const COUNTER_PIXELS = 44;
const SPACE = 3;
const MOST_LANES = 4;
const EXPANDED_THREADS = 2;

/** @returns {Arrangement} */
export function emptyArrangement() {
  return { pinned: [], hidden: [], collapsed: [], expanded: [], closed: [], heights: {}, order: [], filter: '',
    log: [], delta: [], rate: [], shared: false, unfolded: [] };
}

/**
 * What a track is called in arrangements: the same in every profile of a job.
 * @param {{source: number, group: string, id?: string, label: string, number: number}} track
 */
export function keyOf(track) {
  return `${track.source}/${track.group}/${track.id ?? track.label}`;
}

/**
 * What filters and rules find a track by.
 * @param {{source: number, group: string, label: string, holds?: string|null}} row
 * @param {string[]} sourceLabels
 */
export function textOf({ source, group, label, holds }, sourceLabels) {
  return [sourceLabels[source], group, label, holds].filter(Boolean).join(' ');
}

/**
 * @param {Track[]} tracks
 * @param {CounterAbout[]} counters
 * @param {string[]} sourceLabels
 * @param {Arrangement} wanted
 * @returns {Layout}
 */
export function arrange(tracks, counters, sourceLabels, wanted) {
  const rows = inOrder(tracks, counters, wanted.order);
  const shown = rows.filter((row) => !wanted.hidden.includes(row.key) && fits(row, wanted.filter, sourceLabels));
  const before = threadsBefore(tracks);
  /** @type {Item[]} */
  const items = [];
  let y = 0;
  const add = (/** @type {Omit<Item, 'y'>} */ item, space = SPACE) => {
    items.push({ ...item, y });
    y += item.height + space;
  };
  for (const key of wanted.pinned) {
    const row = shown.find((one) => one.key === key);
    if (row) add(itemOf(row, wanted, true, before(row)));
  }
  const pinnedHeight = y ? y + SPACE : 0;
  y = pinnedHeight;
  let last = '';
  const unpinned = shown.filter((row) => !wanted.pinned.includes(row.key));
  const folds = foldsOf(unpinned);
  for (const row of unpinned) {
    const group = groupItem(row, wanted, sourceLabels);
    if (group.key !== last) add(group, 0);
    last = group.key;
    const fold = folds.get(row.key);
    if (group.closed || (fold && fold.rows[0] !== row)) continue;
    if (fold) add(foldItem(fold, wanted));
    for (const one of fold ? unfoldedRows(fold, wanted) : [row]) add(itemOf(one, wanted, false, before(one)));
  }
  return { items, pinnedHeight, height: y };
}

/**
 * How many threads stand before a row: of several runs all are to be in sight, and stacks are opened by hand.
 * @param {Track[]} tracks
 * @returns {(row: Row) => number}
 */
function threadsBefore(tracks) {
  if (tracks.some((track) => track.source > 0)) return () => EXPANDED_THREADS;
  const threads = tracks.filter((track) => track.type === 'thread');
  const places = new Map(threads.map((track, at) => [track.number, at]));
  return ({ track }) => (track && places.get(track.number)) ?? 0;
}

/** @typedef {{key: string, source: number, group: string, label: string, track: Track|null,
 *   counter: CounterAbout|null}} Row */

/**
 * Counters stand behind the tracks of their group, which keep the order of the pack unless moved. Devices of several
 * runs stand together, before their hosts.
 * @param {Track[]} tracks
 * @param {CounterAbout[]} counters
 * @param {string[]} order
 * @returns {Row[]}
 */
function inOrder(tracks, counters, order) {
  /** @type {Map<string, Row[]>} */
  const groups = new Map();
  const add = (/** @type {Row} */ row) => {
    const group = `${row.source}/${row.group}`;
    groups.set(group, [...(groups.get(group) ?? []), row]);
  };
  for (const track of tracks) add({ ...common(track), track, counter: null });
  for (const counter of counters) add({ ...common(counter), track: null, counter });
  const onHost = (/** @type {Row[]} */ [{ track }]) => Number((track?.device ?? null) === null);
  const several = tracks.some((track) => track.source > 0);
  const rows = [...groups.values()].sort((a, b) => (
    (several ? onHost(a) - onHost(b) : 0) || a[0].source - b[0].source)).flat();
  const rank = new Map(order.map((key, at) => [key, at]));
  if (!rank.size) return rows;
  // Moved tracks swap places among themselves: all others stay where they are.
  const moved = rows.filter((row) => rank.has(row.key));
  const sorted = [...moved].sort((a, b) => Number(rank.get(a.key)) - Number(rank.get(b.key)));
  let at = 0;
  return rows.map((row) => {
    if (!rank.has(row.key)) return row;
    at += 1;
    return sorted[at - 1];
  });
}

/** @param {Track|CounterAbout} one */
function common(one) {
  return { key: keyOf(one), source: one.source, group: one.group, label: one.label };
}

/**
 * @param {Row} row
 * @param {string} filter
 * @param {string[]} sourceLabels
 */
function fits(row, filter, sourceLabels) {
  if (!filter) return true;
  const text = textOf(row.track ?? row, sourceLabels);
  try {
    return new RegExp(filter, 'i').test(text);
  } catch {
    return text.toLowerCase().includes(filter.toLowerCase());
  }
}

/**
 * @param {Row} row
 * @param {Arrangement} wanted
 * @param {boolean} pinned
 * @param {number} thread how many threads stand before it
 * @returns {Omit<Item, 'y'>}
 */
function itemOf(row, wanted, pinned, thread) {
  const scale = wanted.heights[row.key] ?? 1;
  const { track, counter, key, label, group } = row;
  const base = { key, label, group, pinned, track, tracks: track ? [track] : [], counter, closed: false };
  if (!track) {
    return { ...base, type: 'counter', height: COUNTER_PIXELS * scale, laneHeight: COUNTER_PIXELS * scale, lanes: [],
      collapsed: false };
  }
  const late = track.type === 'thread' ? thread >= EXPANDED_THREADS : ['other', 'found'].includes(track.type);
  const many = late && track.laneCount > MOST_LANES;
  const collapsed = wanted.collapsed.includes(key) || (many && !wanted.expanded.includes(key));
  const laneHeight = LANE_PIXELS * scale;
  const lanes = lanesOf(track);
  const height = laneHeight * (collapsed ? 1 : Math.max(1, lanes.length));
  return { ...base, type: 'track', height, laneHeight, lanes, collapsed };
}

/**
 * The heading of a row's group.
 * @param {Row} row
 * @param {Arrangement} wanted
 * @param {string[]} sourceLabels
 * @returns {Omit<Item, 'y'>}
 */
function groupItem({ source, group }, wanted, sourceLabels) {
  const key = `${source}/${group}`;
  const label = [sourceLabels[source], group].filter(Boolean).join(' · ');
  const closed = wanted.closed.includes(key);
  return { key, type: 'group', height: GROUP_PIXELS, laneHeight: 0, lanes: [], collapsed: closed, pinned: false,
    track: null, tracks: [], counter: null, label, group, closed };
}

/**
 * The name of streams that hold the same, and while they are folded the row that shows all of them.
 * @param {import('./folds.js').Fold} fold
 * @param {Arrangement} wanted
 * @returns {Omit<Item, 'y'>}
 */
function foldItem({ key, label, rows }, wanted) {
  const collapsed = !wanted.unfolded.includes(key);
  const tracks = collapsed ? rows.flatMap(({ track }) => track ?? []) : [];
  return { key, label, type: 'fold', group: rows[0].group, height: LANE_PIXELS, laneHeight: LANE_PIXELS,
    lanes: tracks.flatMap(lanesOf), collapsed, pinned: false, track: null, tracks, counter: null, closed: false };
}

/**
 * The rows that stand below the name of a fold.
 * @param {import('./folds.js').Fold} fold
 * @param {Arrangement} wanted
 */
function unfoldedRows({ key, rows }, wanted) {
  return wanted.unfolded.includes(key) ? rows : [];
}

/** @param {Track} track */
function lanesOf({ firstLane, laneCount }) {
  return Array.from({ length: laneCount }, (_, at) => firstLane + at);
}

/**
 * The rows of a frame, in device pixels.
 * @param {Layout} layout
 * @param {Arrangement} wanted
 * @param {number} scroll CSS pixels
 * @param {number} height CSS pixels in sight
 * @param {number} scale device pixels per CSS pixel
 */
export function frameRows(layout, wanted, scroll, height, scale) {
  /** @type {import('./engine.js').FrameRow[]} */
  const rows = [];
  /** @type {import('./engine.js').FrameRow[]} */
  const pinned = [];
  for (const item of layout.items) {
    const top = item.pinned ? item.y : item.y - scroll;
    if (item.type === 'group' || top > height || top + item.height < (item.pinned ? 0 : layout.pinnedHeight)) continue;
    const into = item.pinned ? pinned : rows;
    const common_ = { counter: -1, tint: false, shared: [], log: false, mode: modeOf(wanted, item.key) };
    if (item.counter) {
      into.push({ ...common_, lanes: [], counter: item.counter.number, y: Math.round(top * scale),
        height: Math.round(item.height * scale), log: wanted.log.includes(item.key),
        shared: wanted.shared ? alike(layout, wanted, item) : [item.counter.number] });
      continue;
    }
    const lanes = item.collapsed ? [inOne(item)] : item.lanes.map((lane) => [lane]);
    lanes.forEach((list, at) => {
      const y = Math.round((top + at * item.laneHeight) * scale);
      if (y > height * scale || y + item.laneHeight * scale < 0) return;
      into.push({ ...common_, lanes: list, y, height: Math.round((item.laneHeight - 1) * scale) });
    });
  }
  return { rows, pinned, pinnedHeight: Math.round(layout.pinnedHeight * scale) };
}

/**
 * What a collapsed track or fold shows in its row: what nests lies inside its outermost lane; streams and what queries
 * found show all lanes.
 * @param {Item} item
 */
function inOne({ type, track, lanes }) {
  return type === 'fold' || ['stream', 'found'].includes(track?.type ?? '') ? lanes : lanes.slice(0, 1);
}

/**
 * @param {Arrangement} wanted
 * @param {string} key
 * @returns {import('./counter.js').Mode}
 */
export function modeOf(wanted, key) {
  return wanted.rate.includes(key) ? 'rate' : wanted.delta.includes(key) ? 'delta' : 'value';
}

/**
 * The counters that share a scale with one: of its group and unit, shown in the same way.
 * @param {Layout} layout
 * @param {Arrangement} wanted
 * @param {Item} item
 */
function alike(layout, wanted, item) {
  const mode = modeOf(wanted, item.key);
  return layout.items.flatMap(({ counter, group, key }) => (counter && counter.unit === item.counter?.unit
    && counter.source === item.counter?.source && group === item.group && modeOf(wanted, key) === mode
    ? [counter.number] : []));
}

/**
 * @param {Layout} layout
 * @param {number} scroll
 * @param {number} y CSS pixels from the top of what is in sight
 * @returns {{item: Item, lanes: number[]}|null} the lanes that are drawn there
 */
export function hit(layout, scroll, y) {
  const isAbove = y < layout.pinnedHeight;
  const at = isAbove ? y : y + scroll;
  const item = layout.items.find((one) => one.pinned === isAbove && at >= one.y && at < one.y + one.height);
  if (!item) return null;
  const row = Math.floor((at - item.y) / (item.laneHeight || 1));
  return { item, lanes: item.collapsed ? inOne(item) : item.lanes.slice(row, row + 1) };
}

/**
 * Where a lane is drawn; null where it is not in the layout.
 * @param {Layout} layout
 * @param {number} lane
 * @returns {{item: Item, y: number, height: number}|null} y before scrolling
 */
export function placeOf(layout, lane) {
  const item = layout.items.find((one) => (one.type === 'fold' ? one.lanes.includes(lane)
    : one.lanes.length && lane >= one.lanes[0] && lane <= one.lanes[one.lanes.length - 1]));
  if (!item) return null;
  const row = item.collapsed ? 0 : lane - item.lanes[0];
  return { item, y: item.y + row * item.laneHeight, height: item.laneHeight - 1 };
}
