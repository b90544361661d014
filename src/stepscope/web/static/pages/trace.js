/** The trace viewer, which stays as it is while other pages are looked at. */

import { h, put } from '../core/dom.js';
import { missing } from '../widgets/panel.js';
import { mountTrace } from '../trace/viewer.js';

/** @typedef {import('../core/types.js').Context} Context */
/** @typedef {import('../core/types.js').Source} Source */
/** @typedef {import('../core/types.js').Place} Place */
/** @typedef {ReturnType<typeof mountTrace>} Viewer */
/** @typedef {{host: HTMLElement, viewer: Viewer|null, show: (place: Place) => void}} Mounted */

/**
 * The page, one viewer for each run; the viewer's own state goes to `moved`.
 * @param {Source} source
 * @param {() => 'light'|'dark'|'contrast'} theme
 * @param {(params: Record<string, string>) => void} moved
 */
export function tracePage(source, theme, moved) {
  /** @type {Map<number, Mounted>} */
  const known = new Map();
  /** @param {Context} context */
  const render = (context) => {
    const at = context.place.run;
    const mounted = known.get(at) ?? mount(source, context, theme, moved);
    known.set(at, mounted);
    // After the host stands in the document and has a size.
    requestAnimationFrame(() => mounted.show(context.place));
    return mounted.host;
  };
  return {
    page: { id: 'trace', key: 't', title: 'Trace', render, ofOneRank: true },
    setTheme: () => known.forEach(({ viewer }) => viewer?.setTheme?.(theme())),
  };
}

/**
 * @param {Source} source
 * @param {Context} context
 * @param {() => 'light'|'dark'|'contrast'} theme
 * @param {(params: Record<string, string>) => void} moved
 * @returns {Mounted}
 */
function mount(source, context, theme, moved) {
  const loading = h('p', { class: 'loading', role: 'status' }, 'Reading the trace …');
  const host = h('div', { class: 'page trace-host' }, loading);
  /** @type {Place|null} */
  let wanted = null;
  /** @type {Mounted} */
  const mounted = {
    host,
    viewer: null,
    show: (place) => {
      wanted = place;
      const view = asked(place);
      if (view && mounted.viewer) mounted.viewer.show(view);
    },
  };
  const { report, run, place } = context;
  const ask = source.arguments;
  source.pack(place.run).then((pack) => {
    if (!pack) {
      put(host, missing(run.no_pack ?? 'This report was written without its trace.',
        ['Open the profile with ', h('code', null, 'stepscope view'), ' to see it.']));
      return;
    }
    put(host);
    mounted.viewer = mountTrace(host, {
      pack,
      document: report,
      workerUrl: source.workerUrl(),
      theme: theme(),
      ...(ask ? { arguments: (/** @type {number[]} */ ids) => ask(place.run, ids) } : {}),
      onSelect: (state) => moved(asParams(/** @type {Record<string, unknown>} */ (state))),
    });
    if (wanted) mounted.show(wanted);
  }).catch((error) => put(host, missing(`The trace cannot be shown: ${error.message}`)));
  return mounted;
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
 * The viewer's state as parameters of a place; `asked` gives the state back.
 * @param {Record<string, unknown>} state
 * @returns {Record<string, string>}
 */
export function asParams(state) {
  return {
    start: String(state.start_ns),
    end: String(state.end_ns),
    ...(typeof state.track === 'string' ? { track: state.track } : {}),
    ...(Array.isArray(state.pin) && state.pin.length ? { pin: JSON.stringify(state.pin) } : {}),
    ...(state.select ? { sel: JSON.stringify(state.select) } : {}),
  };
}
