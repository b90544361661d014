/** The trace viewer, which stays as it is while other pages are looked at. */

import { download, h, put } from '../core/dom.js';
import { visible } from '../core/text.js';
import { cutMiddle } from '../trace/names.js';
import { missing } from '../widgets/panel.js';
import { warm } from '../trace/client.js';
import { mountTrace } from '../trace/viewer.js';
import { alignedOp, alignedStep, besideAt, chosen, held, offered, together } from './beside.js';
import { tracesOfRanks } from './rank.js';

/** @typedef {import('../core/types.js').Context} Context */
/** @typedef {import('../core/types.js').Source} Source */
/** @typedef {import('../core/types.js').Place} Place */
/** @typedef {ReturnType<typeof mountTrace>} Viewer */
/** @typedef {{host: HTMLElement, beside: string, viewer: Viewer|null, show: (place: Place) => void,
 *   drop: () => void}} Mounted `beside`: the other runs in the same view */
/** @typedef {{source: Source, theme: () => 'light'|'dark'|'contrast', chose: boolean,
 *   moved: (params: Record<string, string>) => void,
 *   queries: import('../core/queries.js').Queries}} Shell `chose`: the reader has just chosen what stands beside */
/** @typedef {Awaited<ReturnType<typeof read>>} Found */
/** @typedef {import('./beside.js').Together} Together */

const LONGEST_PARAM = 4_000;

/**
 * The page, one viewer for each run; the viewer's own state goes to `moved`.
 * @param {Source} source
 * @param {() => 'light'|'dark'|'contrast'} theme
 * @param {(params: Record<string, string>) => void} moved
 * @param {import('../core/queries.js').Queries} queries
 */
export function tracePage(source, theme, moved, queries) {
  /** @type {Shell} */
  const shell = { source, theme, moved, queries, chose: false };
  /** @type {Map<number, Mounted>} */
  const known = new Map();
  /** @param {Context} context */
  const render = (context) => {
    const { run: at, params } = context.place;
    let mounted = known.get(at);
    // A place without parameters is the page as it was left.
    const asLeft = !Object.keys(params).length;
    const beside = asLeft ? mounted?.beside ?? '' : params.beside ?? '';
    if (asLeft && beside) moved({ beside });
    if (!mounted || mounted.beside !== beside) {
      makeRoom(at, beside);
      mounted = mount(shell, context, beside);
      known.set(at, mounted);
    }
    const { host, show } = mounted;
    // After the host stands in the document and has a size.
    requestAnimationFrame(() => show(context.place));
    return host;
  };
  /**
   * Of viewers with several traces there is one at most: each holds its own copies.
   * @param {number} at
   * @param {string} beside
   */
  const makeRoom = (at, beside) => {
    for (const [run, other] of known) {
      if (run !== at && !(beside && other.beside)) continue;
      other.drop();
      known.delete(run);
    }
  };
  return {
    page: { id: 'trace', key: 't', title: 'Trace', render, ofJob: tracesOfRanks },
    /**
     * What stands beside a run, or it beside: the same two stay in one view, whichever is looked at.
     * @param {number} run
     */
    beside: (run) => {
      const own = known.get(run)?.beside;
      if (own) return own;
      for (const [first, { beside }] of known) {
        const others = beside.split('@')[0].split('.');
        if (others.includes(String(run))) return [first, ...others.filter((one) => one !== String(run))].join('.');
      }
      return '';
    },
    setTheme: () => known.forEach(({ viewer }) => viewer?.setTheme?.(theme())),
  };
}

/**
 * @param {Shell} shell
 * @param {Context} context
 * @param {string} beside
 * @returns {Mounted}
 */
function mount(shell, context, beside) {
  const bar = h('div', { class: 'trace-beside', hidden: true });
  const reading = h('p', { class: 'loading', role: 'status' }, 'Reading the trace …');
  const body = h('div', { class: 'trace-body' }, reading);
  const host = h('div', { class: 'page trace-host' }, bar, body);
  let gone = false;
  /** @type {Place|null} */
  let wanted = null;
  /** @type {Mounted} */
  const mounted = {
    host,
    beside,
    viewer: null,
    show: (place) => {
      wanted = place;
      const view = asked(place);
      if (view && mounted.viewer) mounted.viewer.show(view);
      takeKeys(mounted);
    },
    drop: () => {
      gone = true;
      mounted.viewer?.destroy();
    },
  };
  const { source } = shell;
  warm(source.workerUrl());
  const told = (/** @type {string} */ text) => { reading.textContent = `Reading the trace of ${text} …`; };
  read(source, context.place.run, beside, told).then((given) => {
    if (gone) return;
    const viewer = viewerOf(shell, context, mounted, { bar, body }, given);
    mounted.viewer = viewer;
    if (!viewer) return;
    if (wanted) mounted.show(wanted);
    viewer.ready.then(() => takeKeys(mounted));
  }).catch((error) => put(body, missing(`The trace cannot be shown: ${error.message}`)));
  return mounted;
}

/**
 * The viewer of what was read, put into its room; null where the run's own trace is not there.
 * @param {Shell} shell
 * @param {Context} context
 * @param {Mounted} mounted
 * @param {{bar: HTMLElement, body: HTMLElement}} room
 * @param {Found} given
 */
function viewerOf(shell, context, mounted, { bar, body }, given) {
  const { source } = shell;
  const { run, report } = context;
  const { beside } = mounted;
  const { offer, shown, links } = given;
  if (!shown[0].pack) {
    put(body, missing(run.no_pack ?? 'This report was written without its trace.',
      ['Open the profile with ', h('code', null, 'stepscope view'), ' to see it.']));
    return null;
  }
  const packs = shown.flatMap(({ pack }) => (pack ? [pack] : []));
  const there = shown.filter(({ pack }) => pack);
  const joint = there.length > 1 ? together(offer, there, beside) : null;
  const steps = joint && !offer.job ? stepsOf(run) : [];
  const other = otherBeside(shell, context, mounted);
  if (offer.choices.length) choice(shell, bar, mounted, { offer, note: noteOf(given, joint), steps, other });
  put(body);
  return mountTrace(body, {
    pack: packs,
    document: report,
    workerUrl: source.workerUrl(),
    theme: shell.theme(),
    save: saving(shell, context, beside, given),
    runs: there.map((one) => one.at),
    queries: shell.queries,
    ...(joint ? alignment(joint, links) : {}),
    onAlign: steps.length ? (op) => other(besideAt(beside, op), false) : null,
    ...serverOf(source, there.map((one) => one.at)),
    onSelect: (state) => shell.moved({ ...asParams(state), ...(beside && { beside }) }),
  });
}

/**
 * What is told beside the choice: why a trace is not there, how the times were brought together.
 * @param {Found} found
 * @param {Together|null} joint
 */
function noteOf({ shown, left }, joint) {
  if (shown.some(({ pack }) => !pack)) return 'this report does not hold its trace';
  return [joint?.note, left && `${left} left out: together they have more slices than a view can hold`]
    .filter(Boolean).join('; ');
}

/**
 * The viewer's options that bring the times of several traces together.
 * @param {Together} joint
 * @param {ArrayBuffer|null} links
 */
function alignment(joint, links) {
  return {
    links: links && { pack: links, ranks: joint.ranks },
    labels: joint.labels,
    align: joint.align,
    align_step: joint.align_step ?? 0,
    align_op: joint.align_op ?? null,
    moves: joint.moves,
    clocks: joint.clocks,
  };
}

/**
 * What only a server can be asked: SQL of the run itself, and everything its file says of slices.
 * @param {Source} source
 * @param {number[]} runs
 */
function serverOf({ sql, arguments: ask }, runs) {
  return {
    ...(sql ? { sql: sql(runs[0]) } : {}),
    ...(ask ? { arguments: (/** @type {number[]} */ ids, /** @type {number} */ of) => ask(runs[of], ids) } : {}),
  };
}

/**
 * Offers the report as a file that opens with a view.
 * @param {Shell} shell
 * @param {Context} context
 * @param {string} beside
 * @param {Found} found
 */
function saving({ source, queries }, { run, place }, beside, { offer, shown }) {
  const runs = [...(offer.at === null ? [] : [offer.at]), ...shown.map((one) => one.at)];
  return async (/** @type {import('../trace/viewer.js').Shown} */ state) => {
    const params = { ...asParams(state, Infinity), ...(beside && { beside }) };
    const here = { page: 'trace', run: place.run, steps: null, params, queries: queries.list() };
    download(fileName(run.title), await source.saved(runs, here), 'text/html');
  };
}

/**
 * Shows the run beside others, where it was moved to.
 * @param {Shell} shell
 * @param {Context} context
 * @param {Mounted} mounted
 */
function otherBeside(shell, context, mounted) {
  return (/** @type {string} */ next, chose = true) => {
    const { viewer } = mounted;
    const state = viewer && !viewer.seesFirst() ? viewer.state() : null;
    shell.chose = chose;
    context.go('trace', { ...(state ? asParams(state) : {}), beside: next });
  };
}

/**
 * The tracks have the keyboard when the page is come to, unless something else on it has.
 * @param {Mounted} mounted
 */
function takeKeys({ host, viewer }) {
  const { activeElement: now } = document;
  if (host.isConnected && (!now || now === document.body || now.id === 'main')) viewer?.focus();
}

/**
 * The traces to be shown, the run's own first, and what else could be; `left` names those that a view cannot hold.
 * @param {Source} source
 * @param {number} at
 * @param {string} beside
 * @param {(text: string) => void} told which one is read now
 */
async function read(source, at, beside, told) {
  const offer = await offered(source, at);
  const runs = [at, ...chosen(offer, beside)];
  const { shown, left } = await held(source, runs, told);
  const links = runs.length > 1 && offer.at !== null ? await source.pack(offer.at) : null;
  return { offer, shown, links, left: left.join(', ') };
}

/** The name of the file that a report is saved as. @param {string} title */
function fileName(title) {
  const name = title.replace(/^.*[/\\]/, '').replace(/[^\w.-]+/g, '_').slice(0, 80);
  return `${name || 'report'}.html`;
}

/**
 * The choice of what stands beside the run, and how their times are aligned.
 * @param {Shell} shell
 * @param {HTMLElement} bar
 * @param {Mounted} mounted
 * @param {{offer: import('./beside.js').Offer, note: string, steps: string[], other: (beside: string) => void}} about
 *   `steps`: by which the runs can be aligned; `other` shows another choice
 */
function choice(shell, bar, mounted, { offer, note, steps, other }) {
  const { beside } = mounted;
  const values = ['', ...offer.choices.map(({ runs }) => runs.join('.'))];
  const texts = ['nothing', ...offer.choices.map(({ text }) => text)];
  const [now] = beside.split('@');
  const select = h('select', { onchange: () => other(values[select.selectedIndex]) },
    texts.map((text, k) => h('option', { selected: values[k] === now }, text)));
  const op = alignedOp(beside);
  const ofStep = alignedStep(beside);
  const byOp = op && `${cutMiddle(visible(op.name), 40)} (${op.nth + 1} of ${steps[ofStep] ?? 'its step'})`;
  const by = h('select', { onchange: () => other(`${now}@${by.value}`) },
    byOp ? h('option', { value: beside.slice(now.length + 1), selected: true }, byOp) : null,
    steps.map((text, k) => h('option', { value: String(k), selected: !op && k === ofStep }, text)));
  put(bar, h('label', null, 'beside ', select), steps.length ? h('label', null, 'aligned by ', by) : null,
    note ? h('p', { role: 'note' }, note) : null);
  bar.hidden = false;
  if (shell.chose) select.focus();
  shell.chose = false;
}

/** @param {import('../core/types.js').Run} run */
function stepsOf({ report, words }) {
  return report.steps.map(({ index }) => `step ${words.steps[String(index)] ?? index}`);
}

/**
 * What a place asks the viewer to show; null where it asks for nothing.
 * @param {Place} place
 */
export function asked({ params }) {
  const [start, end] = [params.start, params.end].map((text) => (text === undefined ? NaN : Number(text)));
  const isView = Number.isFinite(start) && Number.isFinite(end) && end > start;
  if (!isView) return params.ask ? { ask: params.ask, ...(params.find ? { find: params.find } : {}) } : null;
  return {
    start_ns: start,
    end_ns: end,
    ...textsOf(params),
    ...(params.pin ? { pin: parsedList(params.pin) } : {}),
    ...(params.notes ? { notes: parsed(params.notes) } : {}),
    ...(params.layout ? { layout: parsed(params.layout) } : {}),
    ...(params.tracks ? { tracks: parsed(params.tracks) } : {}),
    ...selected(params),
  };
}

/** @param {Record<string, string>} params */
function selected({ sel, at, dur, name }) {
  if (sel) return { select: parsed(sel) };
  const [start, duration] = [at, dur].map((text) => Number(text ?? NaN));
  if (!Number.isFinite(start) || !Number.isFinite(duration)) return {};
  return { select: { start_ns: start, dur_ns: duration, name: name ?? null } };
}

/**
 * What the viewer's state and the parameters of a place say in the same words.
 * @param {{track?: string|null, colour?: string, find?: string, ask?: string}} from
 */
function textsOf({ track, colour, find, ask }) {
  return {
    ...(track ? { track } : {}),
    ...(colour ? { colour } : {}),
    ...(find ? { find } : {}),
    ...(ask ? { ask } : {}),
  };
}

/** @param {string} text */
function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** @param {string} text */
function parsedList(text) {
  const value = parsed(text);
  return Array.isArray(value) ? value.map(String) : [];
}

/**
 * The viewer's state as parameters of a place; `asked` gives the state back. What is longer than an address may be is
 * left out: the browser keeps notes and layouts too.
 * @param {import('../trace/viewer.js').Shown} state
 * @param {number} [longest] characters of one parameter
 * @returns {Record<string, string>}
 */
export function asParams(state, longest = LONGEST_PARAM) {
  /** @type {[string, unknown][]} */
  const lists = [['pin', state.pin?.length ? state.pin : null], ['sel', state.select], ['notes', state.notes],
    ['layout', state.layout], ['tracks', state.tracks && shortened(state.tracks, longest)]];
  const told = lists.filter(([, value]) => value).map(([name, value]) => [name, JSON.stringify(value)])
    .filter(([, text]) => text.length <= longest);
  return {
    start: String(state.start_ns),
    end: String(state.end_ns),
    ...textsOf(state),
    ...Object.fromEntries(told),
  };
}

/**
 * The tracks that queries made; where what SQL found is too long, its query alone.
 * @param {import('../trace/made.js').Told[]} tracks
 * @param {number} longest
 */
function shortened(tracks, longest) {
  return JSON.stringify(tracks).length <= longest ? tracks : tracks.map(({ text, label }) => ({ text, label }));
}
