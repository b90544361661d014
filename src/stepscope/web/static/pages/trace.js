/** The trace viewer, which stays as it is while other pages are looked at. */

import { download, h, put } from '../core/dom.js';
import { missing } from '../widgets/panel.js';
import { warm } from '../trace/client.js';
import { mountTrace } from '../trace/viewer.js';
import { alignedStep, chosen, offered, together } from './beside.js';
import { tracesOfRanks } from './rank.js';

/** @typedef {import('../core/types.js').Context} Context */
/** @typedef {import('../core/types.js').Source} Source */
/** @typedef {import('../core/types.js').Place} Place */
/** @typedef {ReturnType<typeof mountTrace>} Viewer */
/** @typedef {{host: HTMLElement, beside: string, viewer: Viewer|null, show: (place: Place) => void,
 *   drop: () => void}} Mounted `beside`: the other runs in the same view */
/** @typedef {{source: Source, theme: () => 'light'|'dark'|'contrast', chose: boolean,
 *   moved: (params: Record<string, string>) => void}} Shell `chose`: the reader has just chosen what stands beside */

const LONGEST_PARAM = 4_000;

/**
 * The page, one viewer for each run; the viewer's own state goes to `moved`.
 * @param {Source} source
 * @param {() => 'light'|'dark'|'contrast'} theme
 * @param {(params: Record<string, string>) => void} moved
 */
export function tracePage(source, theme, moved) {
  /** @type {Shell} */
  const shell = { source, theme, moved, chose: false };
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
      // Of viewers with several traces there is one at most: each holds its own copies.
      for (const [run, other] of known) if (run === at || (beside && other.beside)) forget(run, other);
      mounted = mount(shell, context, beside);
      known.set(at, mounted);
    }
    const { host, show } = mounted;
    // After the host stands in the document and has a size.
    requestAnimationFrame(() => show(context.place));
    return host;
  };
  /** @param {number} run @param {Mounted} mounted */
  const forget = (run, mounted) => {
    mounted.drop();
    known.delete(run);
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
  const body = h('div', { class: 'trace-body' },
    h('p', { class: 'loading', role: 'status' }, 'Reading the trace …'));
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
  const { report, run, place } = context;
  const { source } = shell;
  warm(source.workerUrl());
  read(source, place.run, beside).then(({ offer, shown, links }) => {
    if (gone) return;
    const packs = shown.flatMap(({ pack }) => (pack ? [pack] : []));
    if (!shown[0].pack) {
      put(body, missing(run.no_pack ?? 'This report was written without its trace.',
        ['Open the profile with ', h('code', null, 'stepscope view'), ' to see it.']));
      return;
    }
    const there = shown.filter(({ pack }) => pack);
    const joint = there.length > 1 ? together(offer, there, alignedStep(beside)) : null;
    const note = there.length < shown.length ? 'this report does not hold its trace' : joint?.note ?? '';
    const runs = [...(offer.at === null ? [] : [offer.at]), ...shown.map((one) => one.at)];
    const save = async (/** @type {import('../trace/viewer.js').Shown} */ state) => {
      const params = { ...asParams(state, Infinity), ...(beside && { beside }) };
      const here = { page: 'trace', run: place.run, steps: null, params };
      const pieces = await source.saved(runs, here);
      download(fileName(run.title), pieces, 'text/html');
    };
    const steps = joint && !offer.job ? stepsOf(run) : [];
    if (offer.choices.length) choice(shell, bar, mounted, { offer, note, steps, go: context.go });
    put(body);
    const ask = source.arguments;
    mounted.viewer = mountTrace(body, {
      pack: packs,
      document: report,
      workerUrl: source.workerUrl(),
      theme: shell.theme(),
      save,
      runs: there.map((one) => one.at),
      links: joint && links && { pack: links, ranks: joint.ranks },
      ...(joint ? { labels: joint.labels, align: joint.align, align_step: joint.align_step ?? 0,
        moves: joint.moves, clocks: joint.clocks } : {}),
      ...(source.sql ? { sql: source.sql(there[0].at) } : {}),
      ...(ask ? { arguments: (/** @type {number[]} */ ids, /** @type {number} */ of) => ask(there[of].at, ids) } : {}),
      onSelect: (state) => shell.moved({ ...asParams(state), ...(beside && { beside }) }),
    });
    if (wanted) mounted.show(wanted);
    mounted.viewer.ready.then(() => takeKeys(mounted));
  }).catch((error) => put(body, missing(`The trace cannot be shown: ${error.message}`)));
  return mounted;
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
 * The traces to be shown, the run's own first, and what else could be.
 * @param {Source} source
 * @param {number} at
 * @param {string} beside
 */
async function read(source, at, beside) {
  const offer = await offered(source, at);
  const runs = [at, ...chosen(offer, beside)];
  const shown = await Promise.all(runs.map(async (one) => (
    { at: one, run: await source.run(one), pack: await source.pack(one) })));
  const links = runs.length > 1 && offer.at !== null ? await source.pack(offer.at) : null;
  return { offer, shown, links };
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
 * @param {{offer: import('./beside.js').Offer, note: string, steps: string[], go: Context['go']}} about `steps`: by
 *   which the runs can be aligned
 */
function choice(shell, bar, mounted, { offer, note, steps, go }) {
  const { beside } = mounted;
  const values = ['', ...offer.choices.map(({ runs }) => runs.join('.'))];
  const texts = ['nothing', ...offer.choices.map(({ text }) => text)];
  const other = (/** @type {string} */ next) => {
    const { viewer } = mounted;
    const state = viewer && !viewer.seesFirst() ? viewer.state() : null;
    shell.chose = true;
    go('trace', { ...(state ? asParams(state) : {}), beside: next });
  };
  const [now] = beside.split('@');
  const select = h('select', { onchange: () => other(values[select.selectedIndex]) },
    texts.map((text, k) => h('option', { selected: values[k] === now }, text)));
  const by = h('select', { onchange: () => other(`${now}@${by.selectedIndex}`) },
    steps.map((text, k) => h('option', { selected: k === alignedStep(beside) }, text)));
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
  if (!Number.isFinite(start) || !Number.isFinite(end) || end <= start) return null;
  const range = Number.isFinite(Number(params.at ?? NaN)) && Number.isFinite(Number(params.dur ?? NaN));
  return {
    start_ns: start,
    end_ns: end,
    ...(params.track ? { track: params.track } : {}),
    ...(params.pin ? { pin: parsedList(params.pin) } : {}),
    ...(params.notes ? { notes: parsed(params.notes) } : {}),
    ...(params.layout ? { layout: parsed(params.layout) } : {}),
    ...(params.colour ? { colour: params.colour } : {}),
    ...(params.find ? { find: params.find } : {}),
    ...(params.ask ? { ask: params.ask } : {}),
    ...(params.sel ? { select: parsed(params.sel) } : range
      ? { select: { start_ns: Number(params.at), dur_ns: Number(params.dur), name: params.name ?? null } } : {}),
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
    ['layout', state.layout]];
  const told = lists.filter(([, value]) => value).map(([name, value]) => [name, JSON.stringify(value)])
    .filter(([, text]) => text.length <= longest);
  return {
    start: String(state.start_ns),
    end: String(state.end_ns),
    ...(state.track ? { track: state.track } : {}),
    ...(state.colour ? { colour: state.colour } : {}),
    ...(state.find ? { find: state.find } : {}),
    ...(state.ask ? { ask: state.ask } : {}),
    ...Object.fromEntries(told),
  };
}
