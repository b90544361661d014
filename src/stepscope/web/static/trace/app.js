/** The viewer's state and everything that can be done to it; parts of the page listen to what they show. */
import { keep, kept } from './kept.js';
import { unfoldedFor } from './folds.js';
import { QUERIES } from './found.js';
import { arrange, emptyArrangement, keyOf, placeOf, textOf } from './layout.js';
import { joinedNotes, keepNotes, keptNotes, profileKey } from './notes.js';
import { readArrangement, readRules, ruled } from './rules.js';
import { SIGHT, View } from './view.js';

/** @typedef {import('./navigate.js').Brief} Brief */
/** @typedef {import('./layout.js').Arrangement} Arrangement */
/** @typedef {{begin: number, end: number, tracks: number[]}} Area */
/** @typedef {import('./notes.js').Note} Note */
/** @typedef {import('./rules.js').Rule} Rule */
/** @typedef {'view'|'layout'|'selection'|'area'|'look'|'search'|'notes'|'tab'|'asked'|'status'
 *   |'drawn'|'scales'|'drag'} Topic */
/** @typedef {{begin: number, end: number, slices: number, tracks: import('./model.js').Track[],
 *   steps: import('./model.js').Step[], lanes: import('./model.js').Lane[],
 *   sources: (import('./clock.js').Moved & {label: string, header: import('./pack.js').Header})[],
 *   names: string[], nameKinds: Uint8Array,
 *   counters: import('./layout.js').CounterAbout[], kindNames: string[], kinds: string[],
 *   active: {begin: number, end: number}|null, unaligned: string[]}} Meta
 *   `kinds`: those that some slice has; `active`: where nearly all work is, null for none; `unaligned`: runs that lack
 *   the op by which the others are aligned */
/** @typedef {{error: string|null, unknown: string[], count: number, total: number, listed: Brief[],
 *   names: {run: string, name: string, kind: string, count: number, total: number}[],
 *   runs: {label: string, count: number, total: number}[], bins: Uint32Array}} Found */

/** @typedef {{query: (text: string) => Promise<import('./groups.js').Answer>,
 *   tables: () => Promise<Record<string, string[]>>}} Sql */

const LAYOUTS = 'stepscope-trace-layouts';
const RULES = 'stepscope-trace-rules';
const DRAG = 'stepscope-trace-drag';
/** Steps that take up this share of a trace are not shown by themselves. */
const MOST_OF = 0.95;
/** Work that takes up less than this share of what is seen first looks like nothing at all. */
const FEW_PIXELS = 0.05;

export class App {
  /**
   * @param {Meta} meta
   * @param {import('./client.js').Ask} ask
   * @param {import('../core/types.js').Report} report
   * @param {string} theme
   */
  constructor(meta, ask, report, theme) {
    this.meta = meta;
    this.ask = ask;
    this.report = report;
    this.view = new View(meta.begin, meta.end, () => this.emit('view'), {
      get: () => ({ scroll: this.scroll, arrangement: this.arrangement }),
      set: (told) => {
        const { scroll, arrangement } = /** @type {{scroll: number, arrangement: Arrangement}} */ (told);
        this.arrange(arrangement);
        this.scrollTo(scroll);
      },
    });
    /** What was recorded: without what queries made. */
    this.recorded = { tracks: meta.tracks, lanes: meta.lanes, names: meta.names };
    /** @type {import('./found.js').Wanted[]} the queries whose finds are tracks */
    this.made = [];
    /** Every track and counter, with the text that filters and rules look at. */
    this.rows = this.rowsNow();
    /** @type {Rule[]} */
    this.rules = readRules(kept(RULES));
    /** Whether dragging selects an area, and with Shift pans: as Perfetto has it. */
    this.dragSelects = kept(DRAG) === 'select';
    /** @type {Arrangement} */
    this.arrangement = ruled(emptyArrangement(), this.rows, this.rules);
    this.layout = arrange(meta.tracks, meta.counters, this.sourceLabels, this.arrangement);
    this.scroll = 0;
    this.height = 400;
    /** @type {import('./colours.js').Look} */
    this.look = { mode: 'category', palette: 'standard', theme };
    /** @type {Brief|null} */
    this.selection = null;
    /** @type {Area|null} */
    this.area = null;
    this.areaIsLast = false;
    /** @type {Area|null} the area before, which a flame graph can be compared with */
    this.other = null;
    /** @type {{begin: number, end: number}|null} */
    this.measure = null;
    /** @type {{from: Brief, to: Brief, kind: string}[]} */
    this.arrows = [];
    this.profile = profileKey(meta.sources[0].header, meta.slices);
    /** @type {Note[]} */
    this.notes = keptNotes(this.profile);
    /** @type {Found|null} */
    this.found = null;
    this.searched = '';
    /** @type {((slices: number[], source: number) => Promise<object[]>)|null} */
    this.arguments = null;
    /** @type {Sql|null} of a server */
    this.sql = null;
    this.asked = '';
    /** @type {import('../core/queries.js').Queries} */
    this.queries = { list: () => [], set: () => {} };
    /** @type {[number, number][]} start and duration of what a query found */
    this.marks = [];
    /** @type {number[]} per source the number of its run in the report */
    this.runs = [];
    /** @type {string[]} of each source, how exact its clock is */
    this.clocks = [];
    /** @type {Map<number, [number, number]>} of each counter in sight, the least and greatest of its scale */
    this.scales = new Map();
    /** @type {((op: import('./align.js').ByOp) => void)|null} brings the runs of the view together at an op */
    this.align = null;
    /** @type {() => void} saves what is in sight as a picture */
    this.picture = () => {};
    this.tab = 'details';
    /** @type {Note|null} whose name is asked for */
    this.naming = null;
    this.status = '';
    /** @type {Map<Topic, (() => void)[]>} */
    this.listeners = new Map();
  }

  rowsNow() {
    return [...this.meta.tracks, ...this.meta.counters].map((one) => (
      { key: keyOf(one), text: textOf(one, this.sourceLabels) }));
  }

  get sourceLabels() {
    return this.meta.sources.map((source) => source.label);
  }

  /**
   * @param {Topic[]} topics
   * @param {() => void} listener
   */
  on(topics, listener) {
    for (const topic of topics) this.listeners.set(topic, [...(this.listeners.get(topic) ?? []), listener]);
  }

  /** @param {Topic} topic */
  emit(topic) {
    this.listeners.get(topic)?.forEach((listener) => listener());
  }

  /**
   * Ask the page for another one about a source's run.
   * @param {EventTarget|null} from
   * @param {number} source
   * @param {Record<string, unknown>} detail
   */
  goToPage(from, source, detail) {
    const run = this.runs[source];
    from?.dispatchEvent(new CustomEvent('stepscope:go', { bubbles: true,
      detail: { ...detail, ...(run === undefined ? {} : { run }) } }));
  }

  /** What a screen reader says. @param {string} text */
  say(text) {
    this.status = text;
    this.emit('status');
  }

  /** @param {string} tab */
  open(tab) {
    this.tab = tab;
    this.emit('tab');
  }

  /**
   * @param {Brief|null} slice
   * @param {{reveal?: boolean, tab?: string|null}} [how]
   */
  select(slice, how = {}) {
    this.selection = slice;
    // What was measured before is not of this slice.
    if (!this.area && this.measure) {
      this.measure = null;
      this.emit('area');
    }
    this.areaIsLast = false;
    this.arrows = [];
    this.emit('selection');
    if (!slice) return;
    if (how.reveal) this.reveal(slice);
    const tab = how.tab === undefined ? 'details' : how.tab;
    if (tab && this.tab !== tab) this.open(tab);
  }

  /** Bring a slice into sight, in time and height. @param {Brief} slice */
  reveal(slice) {
    this.view.together(() => {
      this.uncover(slice);
      this.revealTime(slice);
    });
  }

  /** @param {Brief} slice */
  revealTime(slice) {
    const tooSmall = slice.dur > 0 && slice.dur < this.view.span / 400;
    const tooLarge = slice.dur > this.view.span * 3;
    if (tooSmall || tooLarge) {
      const room = tooLarge ? 0.2 : 20;
      this.view.fit(slice.start, slice.start + Math.max(slice.dur, 1), room);
    } else {
      this.view.reveal(slice.start, Math.min(slice.dur, this.view.span * 0.8));
    }
  }

  /**
   * Show the track of a slice, and its lane where the track was collapsed.
   * @param {Pick<Brief, 'track'|'lane'|'depth'>} slice
   */
  uncover(slice) {
    this.view.together(() => this.uncovered(slice));
  }

  /** @param {Pick<Brief, 'track'|'lane'|'depth'>} slice */
  uncovered(slice) {
    const track = this.meta.tracks[slice.track];
    const key = keyOf(track);
    const { arrangement } = this;
    const group = `${track.source}/${track.group}`;
    const place = placeOf(this.layout, slice.lane);
    if (!place || place.item.type === 'fold' || (place.item.collapsed && slice.depth > 0)) {
      this.arrange({
        unfolded: unfoldedFor(arrangement, track),
        hidden: arrangement.hidden.filter((one) => one !== key), filter: place ? arrangement.filter : '',
        closed: arrangement.closed.filter((one) => one !== group),
        collapsed: arrangement.collapsed.filter((one) => one !== key),
        expanded: [...new Set([...arrangement.expanded, key])],
      });
    }
    const now = placeOf(this.layout, slice.lane);
    if (!now || now.item.pinned) return;
    const top = this.layout.pinnedHeight;
    if (now.y - this.scroll < top + 8 || now.y + now.height - this.scroll > this.height - 8) {
      this.scrollTo(now.y - top - (this.height - top) / 3);
    }
  }

  /** Bring a track or counter into sight, hidden or not. @param {string} key */
  showRow(key) {
    const { arrangement } = this;
    const track = this.meta.tracks.find((one) => keyOf(one) === key);
    this.view.together(() => {
      this.arrange({ hidden: arrangement.hidden.filter((one) => one !== key), filter: '',
        unfolded: unfoldedFor(arrangement, track),
        closed: arrangement.closed.filter((one) => !key.startsWith(`${one}/`)) });
      const item = this.layout.items.find((one) => one.key === key);
      if (item && !item.pinned) this.scrollTo(item.y - this.layout.pinnedHeight - this.height / 3);
    });
  }

  /** One track alone; all of them where it stands alone already. @param {string} key */
  solo(key) {
    const others = this.rows.filter((row) => row.key !== key).map((row) => row.key);
    const isAlone = others.every((one) => this.arrangement.hidden.includes(one));
    this.arrange({ hidden: isAlone ? [] : others, filter: '', closed: [] });
    this.say(isAlone ? 'All tracks are shown' : 'One track alone');
  }

  /** @param {number} y @param {boolean} [quiet] without a place in the history */
  scrollTo(y, quiet = false) {
    const most = Math.max(0, this.layout.height - this.height + 24);
    const wanted = Math.max(0, Math.min(y, most));
    if (wanted === this.scroll) return;
    if (!quiet) this.view.remember(SIGHT);
    this.scroll = wanted;
    this.emit('view');
  }

  /** @param {[number, number, number][]} drawn counters with the least and greatest of their scales */
  scaled(drawn) {
    const isKnown = drawn.every(([counter, low, high]) => {
      const [least, most] = this.scales.get(counter) ?? [];
      return least === low && most === high;
    });
    if (isKnown) return;
    for (const [counter, low, high] of drawn) this.scales.set(counter, [low, high]);
    this.emit('scales');
  }

  /** @param {Partial<Arrangement>} change */
  arrange(change) {
    const next = { ...this.arrangement, ...change };
    if (JSON.stringify(next) !== JSON.stringify(this.arrangement)) this.view.remember('tracks');
    this.arrangement = next;
    this.layout = arrange(this.meta.tracks, this.meta.counters, this.sourceLabels, this.arrangement);
    this.scrollTo(this.scroll, true);
    this.emit('layout');
  }

  /**
   * Put a key into a list of the arrangement, or take it out.
   * @param {'pinned'|'hidden'|'collapsed'|'expanded'|'closed'|'log'} list
   * @param {string} key
   */
  toggle(list, key) {
    const held = this.arrangement[list];
    this.arrange({ [list]: held.includes(key) ? held.filter((one) => one !== key) : [...held, key] });
  }

  /** @param {Area|null} area */
  selectArea(area) {
    if (this.area && area && JSON.stringify(this.area) !== JSON.stringify(area)) this.other = this.area;
    this.area = area;
    this.areaIsLast = true;
    this.measure = area ? { begin: area.begin, end: area.end } : null;
    this.emit('area');
    if (area && this.tab !== 'flame') this.open('area');
  }

  /** All tracks of a run, hidden ones too. @param {number} source */
  tracksOf(source) {
    return this.meta.tracks.filter((track) => track.source === source).map(({ number }) => number);
  }

  /** The tracks that can be seen, hidden and closed ones left out. */
  get shownTracks() {
    return this.layout.items.flatMap((item) => item.tracks.map(({ number }) => number));
  }

  /** What dragging does from now on. */
  swapDrag() {
    this.dragSelects = !this.dragSelects;
    keep(DRAG, this.dragSelects ? 'select' : 'pan');
    this.emit('drag');
    this.say(this.dragSelects ? 'Dragging selects an area, with Shift it pans'
      : 'Dragging pans, with Shift it selects an area');
  }

  /** @param {Partial<import('./colours.js').Look>} change */
  setLook(change) {
    this.look = { ...this.look, ...change };
    this.emit('look');
  }

  /** The query that the address and a saved report keep. @param {string} text */
  setAsked(text) {
    this.asked = text;
    this.emit('asked');
  }

  /**
   * A counter of what a query found, above the tracks.
   * @param {string} name
   * @param {string|null} unit
   * @param {[number, number][]} samples times and values
   */
  async addCounter(name, unit, samples) {
    const { counters } = this.meta;
    const label = `${name} (${counters.filter((one) => one.group === QUERIES).length + 1})`;
    const made = await this.ask('counter', { label, group: QUERIES, unit, samples });
    counters.push(made);
    const key = keyOf(made);
    this.rows.push({ key, text: textOf(made, this.sourceLabels) });
    this.view.together(() => this.arrange({ pinned: [...this.arrangement.pinned, key] }));
    this.say(`${label} is a counter above the tracks`);
  }

  /** Show what was recorded alone: frames may not ask for tracks that are about to change. */
  letGo() {
    const { tracks } = this.recorded;
    if (this.selection && this.selection.track >= tracks.length) this.select(null);
    if (this.area?.tracks.some((number) => number >= tracks.length)) this.selectArea(null);
    this.hold({ tracks: [], lanes: [], names: [] });
  }

  /**
   * Tracks of what queries found, behind those that were recorded.
   * @param {Pick<Meta, 'tracks'|'lanes'|'names'>} made
   */
  hold({ tracks, lanes, names }) {
    const { recorded } = this;
    this.meta = { ...this.meta, tracks: [...recorded.tracks, ...tracks], lanes: [...recorded.lanes, ...lanes],
      names: [...recorded.names, ...names] };
    this.rows = this.rowsNow();
    this.arrange({});
    this.emit('look');
  }

  /** Stretches of time to be seen over the tracks. @param {[number, number][]} marks */
  setMarks(marks) {
    this.marks = marks;
    this.emit('notes');
    this.say(`${marks.length} stretches are marked`);
  }

  /** @param {string} text */
  async search(text) {
    this.searched = text;
    this.found = text.trim() ? await this.ask('search', { text }) : null;
    if (this.searched === text) this.emit('search');
  }

  /**
   * @param {'beside'|'across'|'same'|'flow'|'hit'|'gap'} how
   * @param {number} way
   */
  async go(how, way) {
    const slice = this.selection?.slice ?? (how === 'hit' ? 0 : -1);
    if (slice < 0 && how !== 'gap') {
      this.say('Nothing is selected: click a slice first');
      return;
    }
    const next = await this.ask('next', { slice, how, way });
    if (next) this.select(next, { reveal: true, tab: how === 'hit' ? null : undefined });
    else this.say('There is no further one');
  }

  /** What is seen first: the steps, where much else was recorded; where nearly all work is, if that is in few pixels of
   * them; else everything. */
  home() {
    const { steps, begin, end, active } = this.meta;
    const from = steps.reduce((least, step) => Math.min(least, step.start, step.hostStart), Infinity);
    const until = steps.reduce((most, step) => Math.max(most, step.end), -Infinity);
    const ofSteps = until - from > 0 && until - from < (end - begin) * MOST_OF;
    const shown = ofSteps ? until - from : end - begin;
    if (active && active.end - active.begin < shown * FEW_PIXELS) this.view.fit(active.begin, active.end);
    else if (ofSteps) this.view.fit(from, until, 0.02);
    else this.view.whole();
  }

  /** Show the next or previous step. @param {number} way */
  step(way) {
    const middle = (this.view.begin + this.view.end) / 2;
    const steps = this.meta.steps.filter((one) => one.source === (this.selection?.source ?? 0));
    const here = steps.findIndex((one) => middle >= one.start && middle < one.end);
    const before = steps.filter((one) => one.end <= middle).length;
    const next = steps[here >= 0 ? here + way : way > 0 ? before : before - 1];
    if (!next) {
      this.say('There is no further step');
      return;
    }
    this.view.fit(next.start, next.end, 0.03);
    this.say(next.name);
  }

  /** What was selected last. @returns {{begin: number, end: number}|null} */
  get range() {
    const { area, selection } = this;
    if (area && (this.areaIsLast || !selection)) return area;
    return selection && { begin: selection.start, end: selection.start + selection.dur };
  }

  /**
   * Other notes; those that are to be kept are, where the browser may.
   * @param {Note[]} notes
   * @returns {boolean} whether they could be kept
   */
  setNotes(notes) {
    this.notes = joinedNotes([], notes);
    const done = keepNotes(this.profile, this.notes);
    this.emit('notes');
    if (this.tab === 'notes') this.emit('tab');
    return done;
  }

  /**
   * Mark the selection, else what is in sight: for now, or as a note that is kept. What is marked for now already is
   * unmarked.
   * @param {boolean} isKept
   * @param {string} [text]
   * @returns {Note|null} null where it was unmarked
   */
  mark(isKept, text = '') {
    const { begin, end } = this.range ?? this.measure ?? this.view;
    const [time, until] = [Math.round(begin), Math.round(end)];
    const others = this.notes.filter((note) => note.kept);
    const same = this.notes.some((note) => !note.kept && note.time === time && note.end === until);
    if (!isKept && same) {
      this.setNotes(others);
      return null;
    }
    const note = { time, end: until, text: text || (isKept ? `note ${others.length + 1}` : ''), kept: isKept };
    const done = this.setNotes([...others, note]);
    this.say(!isKept ? 'Marked for now' : done ? `Note ${note.text} is kept`
      : 'This page may not keep notes: save the report with this view to keep them');
    return note;
  }

  /** @returns {Record<string, Arrangement>} */
  savedLayouts() {
    const saved = kept(LAYOUTS);
    return Object.fromEntries(Object.entries(saved && typeof saved === 'object' ? saved : {})
      .map(([name, layout]) => [name, readArrangement(layout)]));
  }

  /** @param {string} name */
  saveLayout(name) {
    const done = keep(LAYOUTS, { ...this.savedLayouts(), [name]: this.arrangement });
    this.say(done ? `Layout ${name} is kept` : 'This page may not keep layouts');
  }

  /** @param {string} name */
  forgetLayout(name) {
    keep(LAYOUTS, Object.fromEntries(Object.entries(this.savedLayouts()).filter(([one]) => one !== name)));
    this.say(`Layout ${name} is forgotten`);
  }

  /** Rules for this trace and all that are opened later. @param {Rule[]} rules */
  setRules(rules) {
    const added = rules.filter((rule) => !this.rules.includes(rule));
    this.rules = rules;
    this.arrange(ruled(this.arrangement, this.rows, added));
    this.say(keep(RULES, rules) ? 'Rules are kept' : 'This page may not keep rules: they hold until it is closed');
  }
}
