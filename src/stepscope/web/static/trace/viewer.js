/** The trace viewer. */
import { h, put } from '../core/dom.js';
import { prose } from '../core/text.js';
import { shownPalette } from '../core/theme.js';
import { App } from './app.js';
import { boxes } from './boxes.js';
import { startEngine } from './client.js';
import { headers } from './headers.js';
import { bindings, listen } from './keys.js';
import { commands, shareChoices, trackChoices } from './palette.js';
import { panel } from './panel.js';
import { picture } from './picture.js';
import { pointer } from './pointer.js';
import { minimap, ruler } from './ruler.js';
import { show, stateOf } from './shown.js';
import { Stage } from './stage.js';
import { toolbar } from './toolbar.js';

/** @typedef {import('./shown.js').Shown} Shown */
/** @typedef {{pack: ArrayBuffer|ArrayBuffer[], workerUrl: string|null, theme: string,
 *   document: import('../core/types.js').Report,
 *   onSelect: (state: Shown) => void, labels?: string[], align?: 'clock'|'steps', align_step?: number,
 *   align_op?: import('./align.js').ByOp|null, onAlign?: ((op: import('./align.js').ByOp) => void)|null,
 *   moves?: import('./model.js').ReadOptions['moves'], links?: import('./model.js').Links|null,
 *   clocks?: string[], runs?: number[], save?: (state: Shown) => Promise<void>,
 *   sql?: import('./app.js').Sql, queries?: import('../core/queries.js').Queries,
 *   arguments?: (slices: number[], source: number) => Promise<object[]>}} Options `moves` brings the times of each
 *   pack to one clock, of which `clocks` tells; `links` joins their collectives; `runs` are the packs' numbers in the
 *   report; `save` writes the report with a view; `arguments` is everything the recorded file says of slices, where a
 *   server can be asked */

const TOLD_MS = 250;
/** Sentences of the banner: more hide the tracks. */
const MOST_TOLD = 4;

/**
 * @param {HTMLElement} container
 * @param {Options} options
 */
export function mountTrace(container, options) {
  const status = h('p', { class: 'tv-loading', role: 'status' }, 'Reading the trace …');
  // Whatever of it is clicked, its keys work.
  const root = h('div', { class: `tv-root tv-${options.theme}`, tabindex: '-1' }, status);
  put(container, root);
  /** @type {Mounted|null} */
  let mounted = null;
  /** @type {Shown|null} */
  let wanted = null;
  let gone = false;
  let { theme } = options;
  const started = performance.now();
  const ready = open(root, status, options).then((made) => {
    if (gone) {
      made.stop();
      return;
    }
    mounted = made;
    if (theme !== options.theme) made.setTheme(theme);
    if (wanted) made.show(wanted);
    root.dataset.readyMs = String(Math.round(performance.now() - started));
  }).catch((error) => {
    put(root, h('p', { class: 'tv-loading tv-bad', role: 'alert' }, `The trace cannot be shown: ${error.message}`));
  });
  return {
    /** @param {Shown} view */
    show: (view) => {
      wanted = view;
      mounted?.show(view);
    },
    /** @returns {Shown|null} null until the trace is read */
    state: () => mounted?.state() ?? wanted,
    /** Whether what is in sight was seen first. */
    seesFirst: () => mounted?.seesFirst() ?? !wanted,
    /** Give the tracks the keyboard. */
    focus: () => {
      /** @type {HTMLElement|null} */ (root.querySelector('.tv-stage'))?.focus({ preventScroll: true });
    },
    /** @param {string} next */
    setTheme: (next) => {
      theme = next;
      root.className = `tv-root tv-${next}`;
      mounted?.setTheme(next);
    },
    destroy: () => {
      gone = true;
      mounted?.stop();
      put(container);
    },
    ready,
  };
}

/** @typedef {{show: (view: Shown) => void, state: () => Shown, seesFirst: () => boolean,
 *   setTheme: (theme: string) => void, stop: () => void}} Mounted */

/**
 * @param {HTMLElement} root
 * @param {HTMLElement} status
 * @param {Options} options
 * @returns {Promise<Mounted>}
 */
async function open(root, status, options) {
  const engine = await startEngine(options.workerUrl, (done, of) => {
    status.textContent = `Reading the trace … ${of ? Math.round((100 * done) / of) : 0} %`;
  });
  const packs = [options.pack].flat();
  const { labels, align, align_step, align_op, moves, links } = options;
  const meta = await engine.ask('load', { packs, options: { labels, align, align_step, align_op, moves, links } });
  const app = new App(meta, engine.ask, options.document, options.theme);
  app.arguments = options.arguments ?? null;
  app.sql = options.sql ?? null;
  app.align = options.onAlign ?? null;
  app.queries = options.queries ?? app.queries;
  app.runs = options.runs ?? [];
  app.clocks = options.clocks ?? [];
  const unlisten = build(root, app, options.save ?? null);
  if (shownPalette() !== app.look.palette) app.setLook({ palette: shownPalette() });
  app.home();
  app.view.past = [];
  const first = { begin: app.view.begin, end: app.view.end };
  /** @type {ReturnType<typeof setTimeout>|undefined} */
  let later;
  const tell = () => {
    clearTimeout(later);
    later = setTimeout(() => options.onSelect(stateOf(app)), TOLD_MS);
  };
  app.on(['view', 'selection', 'area', 'layout', 'notes', 'look', 'search', 'asked'], tell);
  return {
    show: (view) => show(app, view),
    state: () => stateOf(app),
    seesFirst: () => app.view.begin === first.begin && app.view.end === first.end,
    setTheme: (theme) => app.setLook({ theme, palette: shownPalette() }),
    stop: () => {
      clearTimeout(later);
      unlisten();
      engine.stop();
    },
  };
}

/**
 * @param {HTMLElement} root
 * @param {App} app
 * @param {((state: Shown) => Promise<void>)|null} save
 * @returns {() => void}
 */
function build(root, app, save) {
  const stage = new Stage(app);
  const over = boxes(root, stage.element);
  const map = minimap(app);
  const line = ruler(app);
  const heads = headers(app);
  app.picture = () => picture(app, stage);
  const page = { png: app.picture, ask: over.ask, save: save && (() => save(stateOf(app))) };
  const bar = toolbar(app, {
    help: () => over.help(keys),
    commands: () => over.choose('Commands', commands(app, keys, page)),
    share: () => over.choose('Share this view', shareChoices(app, page)),
    back: () => stage.element.focus(),
  });
  const keys = bindings(app, { help: bar.help, commands: bar.commands, search: () => bar.search.focus(),
    tracks: () => over.choose('Find a track', trackChoices(app)) });
  const live = h('div', { class: 'tv-live', role: 'status', 'aria-live': 'polite' });
  const below = panel(app);
  const split = splitter(root);
  put(root, bar.element, banners(app),
    h('div', { class: 'tv-map' }, map.canvas), h('div', { class: 'tv-time' }, line.canvas),
    h('div', { class: 'tv-body' }, heads, stage.element), split, below, live, over.dialog);
  pointer(app, stage, line.canvas);
  const stop = listen(app, root, keys);
  app.on(['drawn'], () => app.ask('prepare', null).then(() => app.ask('finish', null)));
  app.on(['status'], () => { live.textContent = app.status; });
  app.on(['selection'], () => {
    const { selection } = app;
    if (!selection) return;
    const { name, kind, dur, track } = selection;
    live.textContent = `${name.slice(0, 200)}, ${kind}, ${dur} ns, on ${app.meta.tracks[track].label}`;
  });
  const size = () => {
    stage.resize();
    map.draw();
    line.draw();
  };
  const observer = new ResizeObserver(size);
  observer.observe(stage.element);
  stage.recolour();
  return () => {
    stop();
    stage.stopped = true;
    observer.disconnect();
  };
}

/**
 * What one must know of the trace: what was lost, and clocks that cannot be compared.
 * @param {App} app
 */
function banners(app) {
  const texts = app.meta.sources.flatMap((source) => source.header.losses.map((/** @type {string} */ loss) => (
    source.label ? `${source.label}: ${loss}` : loss)));
  for (const run of app.meta.unaligned) {
    texts.push(`${run} has no such op in that step: it is aligned by the step.`);
  }
  if (!app.meta.slices) texts.push('This profile holds no slices: nothing was recorded that could be drawn.');
  if (!texts.length) return null;
  const further = texts.length > MOST_TOLD ? `${texts.length - MOST_TOLD} more: the overview lists them.` : null;
  return h('div', { class: 'tv-banner', role: 'note' },
    [...texts.slice(0, MOST_TOLD), ...(further ? [further] : [])].map((text) => h('p', null, ...prose(text))));
}

/**
 * The bar between tracks and panel: dragged, or moved with the arrow keys.
 * @param {HTMLElement} root
 */
function splitter(root) {
  const bar = h('div', { class: 'tv-split', role: 'separator', tabindex: '0', 'aria-orientation': 'horizontal',
    'aria-label': 'Height of the panel', 'aria-valuenow': 240 });
  const set = (/** @type {number} */ pixels) => {
    const most = root.clientHeight - 220;
    const height = Math.max(30, Math.min(pixels, most));
    root.style.setProperty('--tv-panel-height', `${height}px`);
    bar.setAttribute('aria-valuenow', String(Math.round(height)));
  };
  const now = () => (/** @type {HTMLElement|null} */ (root.querySelector('.tv-panel'))?.offsetHeight ?? 240);
  bar.addEventListener('pointerdown', (event) => bar.setPointerCapture(event.pointerId));
  bar.addEventListener('pointermove', (event) => {
    if (bar.hasPointerCapture(event.pointerId)) set(root.getBoundingClientRect().bottom - event.clientY);
  });
  bar.addEventListener('keydown', (event) => {
    const way = { ArrowUp: 1, ArrowDown: -1 }[event.key];
    if (!way) return;
    event.preventDefault();
    event.stopPropagation();
    set(now() + way * 24);
  });
  return bar;
}
