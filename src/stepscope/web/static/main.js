/** The shell around the pages: navigation, run and step choice, theme, help; it draws the page that the place names. */

import { h, put } from './core/dom.js';
import { namesOf, placesOf } from './core/ranges.js';
import { preparePrints } from './core/printing.js';
import { router, written } from './core/router.js';
import { openingHash } from './core/saved.js';
import { source } from './core/source.js';
import { visible } from './core/text.js';
import {
  choosePalette, chooseTheme, chosenPalette, chosenTheme, PALETTES, showTheme, THEMES,
} from './core/theme.js';
import { asking } from './pages/asking.js';
import { PAGES } from './pages/pages.js';
import { tracePage } from './pages/trace.js';
import { captureForm } from './widgets/capture.js';
import { traceParams } from './widgets/finding.js';
import { help } from './widgets/help.js';
import { scopeNote } from './widgets/scope.js';
import { strip } from './widgets/strip.js';
import { hideTip } from './widgets/tip.js';
import { waiting } from './widgets/waiting.js';

/** @typedef {import('./core/types.js').Context} Context */
/** @typedef {import('./core/types.js').Page} Page */
/** @typedef {import('./core/types.js').Place} Place */
/** @typedef {import('./core/types.js').Run} Run */

/** Beside chosen steps, of their time: what is before and behind them stays small. */
const STEPS_ROOM = 0.03;

const data = source();
const live = h('div', { class: 'sr', role: 'status', 'aria-live': 'polite' });
const main = h('main', { id: 'main', tabindex: -1 });
const stripSlot = h('div', { class: 'strip-slot' });
const chip = h('span', { class: 'chip', hidden: true });
const { go, place } = router((to) => void draw(to), openingHash());
const queries = {
  list: () => place().queries ?? [],
  set: (/** @type {import('./core/queries.js').Query[]} */ list) => remember({ ...place(), queries: list }),
};
const trace = tracePage(data, theme, (params) => {
  // The viewer moved by itself: the address follows, nothing is drawn.
  if (place().page === 'trace') remember({ ...place(), params });
}, queries);
const ask = asking(data, queries);
const pages = [...PAGES, trace.page];
const links = pages.map((page) =>
  h(
    'a',
    { href: `#/${page.id}`, onclick: (/** @type {MouseEvent} */ event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault(); // In a frame without an address a fragment would leave the page.
      open(page.id);
    } },
    page.title,
    h('kbd', { 'aria-hidden': 'true' }, `g ${page.key}`),
  ),
);
const themeChoice = h('select', { 'aria-label': 'Theme', onchange: () => {
  chooseTheme(THEMES[themeChoice.selectedIndex]);
  trace.setTheme();
} }, THEMES.map((one) => h('option', { value: one, selected: one === chosenTheme() },
  { auto: 'System theme', light: 'Light', dark: 'Dark', contrast: 'High contrast' }[one])));
const paletteChoice = h('select', { 'aria-label': 'Colours', onchange: () => {
  choosePalette(PALETTES[paletteChoice.selectedIndex]);
  trace.setTheme();
} }, PALETTES.map((one) => h('option', { value: one, selected: one === chosenPalette() },
  { standard: 'Standard colours', blind: 'Colour-blind' }[one])));
const runChoice = h('select', { 'aria-label': 'Profile', onchange: () => {
  go({ ...place(), run: runChoice.selectedIndex, steps: null, params: {} });
} }, data.titles.map((title) => h('option', null, visible(title))));
const helpDialog = help(pages);
const capture = data.capture && captureForm(data.capture, (at) => {
  history.replaceState(null, '', written({ page: 'overview', run: at, steps: null, params: {} }));
  location.reload(); // The page holds the list of profiles.
});

/** Where each place was scrolled to when it was left: the way back leads there. @type {Map<string, number>} */
const scrolls = new Map();
main.addEventListener('scroll', () => scrolls.set(location.hash, main.scrollTop), { passive: true });
/** @type {{page: string, run: number}|null} */
let drawn = null;
let drawing = 0;

function theme() {
  const shown = document.documentElement.dataset.theme;
  return shown === 'dark' || shown === 'contrast' ? shown : 'light';
}

/** From its beginning: its button, which would have the focus, is at its end. */
function showHelp() {
  helpDialog.showModal();
  helpDialog.querySelector('h2')?.focus();
}

/** @param {string} page @param {Record<string, string>} [params] */
function open(page, params = {}) {
  const to = { ...place(), page, params };
  scrolls.delete(written(to)); // Who goes on begins at the top; who goes back is where he was.
  go(to);
}

/** @param {Place} to */
function remember(to) {
  go(to, true, true);
}

/** @param {Place} to */
async function draw(to) {
  const turn = ++drawing;
  hideTip();
  const page = pages.find((one) => one.id === to.page) ?? pages[0];
  const at = to.run < data.titles.length ? to.run : 0;
  mark(page);
  runChoice.selectedIndex = at;
  const moved = drawn?.page !== page.id || drawn?.run !== at;
  if (drawn?.run !== at) put(main, waiting(data.progress && (() => data.progress?.(at) ?? Promise.reject())));
  try {
    const [run, comparison] = await Promise.all([data.run(at), comparisonOf(page, to.params)]);
    if (turn !== drawing) return; // The reader has gone on.
    show(page, contextOf(run, comparison, { ...to, run: at }), moved);
    drawn = { page: page.id, run: at };
  } catch (error) {
    console.error(error);
    const text = `This cannot be shown: ${/** @type {Error} */ (error).message}`;
    put(main, h('p', { class: 'damage', role: 'alert' }, text));
  }
}

/** The page in the navigation. @param {Page} page */
function mark(page) {
  links.forEach((link, index) => {
    if (pages[index] !== page) {
      link.removeAttribute('aria-current');
      return;
    }
    link.setAttribute('aria-current', 'page');
    link.scrollIntoView({ block: 'nearest', inline: 'nearest' });
  });
}

/**
 * Served, the comparison reads the other profile too: only its own page waits for that.
 * @param {Page} page
 * @param {Record<string, string>} params
 */
function comparisonOf(page, { before, after }) {
  if (page.id !== 'compare') return null;
  const picked = before !== undefined || !data.picks || data.titles[0].startsWith('before: ');
  return picked ? data.comparison(Number(before ?? 0), Number(after ?? 1)) : null;
}

/**
 * @param {Page} page
 * @param {Context} context
 * @param {boolean} moved whether this is another page than before
 */
function show(page, context, moved) {
  const { params, steps: chosen } = context.place;
  putTop(page, context);
  if (page.id === 'trace' && chosen && !Object.keys(params).length) {
    context.place.params = spanOf(context.report.steps, chosen);
  }
  putStrip(page, context);
  putPage(page, context, moved);
  if (params.finding) openFinding(params.finding);
  if (params.part && moved) main.querySelector(`[data-part="${CSS.escape(params.part)}"]`)?.scrollIntoView();
}

/** @param {Page} page @param {Context} context */
function putTop(page, context) {
  const { run } = context;
  pages.forEach((one, at) => {
    links[at].hidden = one !== page && !inNavigation(one, run);
  });
  document.title = `${page.title} · ${run.title} · stepscope`;
  ask.at(context);
  chip.hidden = run.report.profile.complete;
  chip.textContent = 'damaged: partly read';
}

/**
 * The strip of steps, where the page has use for it; who moves it by keys keeps it.
 * @param {Page} page
 * @param {Context} context
 */
function putStrip(page, context) {
  const { steps, analyses } = context.report;
  const focused = document.activeElement?.classList.contains('strip-area');
  const ofSteps = steps.length > 1 && !analyses.ranks && !(page.id === 'compare' && context.comparison);
  put(stripSlot, ofSteps ? strip(steps, context.words.steps, context.place.steps, (range) => {
    const { beside = '' } = place().params;
    const shown = page.id === 'trace' ? { ...spanOf(steps, range), ...(beside && { beside }) } : place().params;
    go({ ...place(), steps: namesOf(steps, range), params: shown }, true);
  }) : null);
  if (focused) /** @type {HTMLElement|null} */ (stripSlot.querySelector('.strip-area'))?.focus();
}

/**
 * @param {Page} page
 * @param {Context} context
 * @param {boolean} moved
 */
function putPage(page, context, moved) {
  const isJob = Boolean(context.report.analyses.ranks);
  const isViewer = page.id === 'trace' && !isJob;
  main.classList.toggle('wide', isViewer);
  const top = main.scrollTop;
  put(main, h('h1', { class: isViewer ? 'sr' : '' }, page.title),
    isJob && page.ofJob ? page.ofJob(context) : page.render(context));
  if (context.place.steps && page.ofSteps) main.querySelector('.page')?.prepend(scopeNote(main, context.scope()));
  main.scrollTop = moved ? scrolls.get(location.hash) ?? 0 : top;
  if (moved && drawn) main.focus({ preventScroll: true });
}

/**
 * Whether a page has something to show of a run; the trace of a job has where it holds that of any rank.
 * @param {Page} page
 * @param {Run} run
 */
function inNavigation(page, { report, traces }) {
  if (page.id === 'compare') return data.compared || data.picks;
  if (report.analyses.ranks && page.id === 'trace') return Object.keys(traces).length > 0;
  return page.has?.(report) ?? true;
}

/**
 * What the trace shows of some steps.
 * @param {import('./core/types.js').Step[]} steps
 * @param {[number, number]|null} range
 */
function spanOf(steps, range) {
  const [first, last] = range ?? [0, steps.length - 1];
  const start = steps[first].start_ns;
  const duration = steps[last].start_ns + steps[last].dur_ns - start;
  return { ...traceParams(start, duration, null), start: String(start - Math.round(duration * STEPS_ROOM)),
    end: String(start + Math.round(duration * (1 + STEPS_ROOM))) };
}

/**
 * @param {Run} run
 * @param {import('./core/types.js').Comparison|null} comparison
 * @param {Place} to
 * @returns {Context}
 */
function contextOf(run, comparison, to) {
  const isJob = Boolean(run.report.analyses.ranks);
  // A job has no one list of steps.
  const steps = isJob || run.report.steps.length < 2 ? null : placesOf(run.report.steps, to.steps);
  /** @param {number|null|undefined} rank */
  const runOf = (rank) => (isJob ? run.traces[String(rank)] : to.run);
  return {
    run,
    report: run.report,
    words: run.words,
    comparison,
    titles: data.picks ? data.titles : [],
    picks: data.picks,
    place: { ...to, steps },
    go: open,
    hasTrace: (rank) => runOf(rank) !== undefined,
    ofRank: (rank, params = {}) => go({ ...to, run: runOf(rank) ?? to.run, params }),
    trace: (rank, params) => {
      const other = runOf(rank) ?? to.run;
      const beside = trace.beside(other);
      go({ page: 'trace', run: other, steps: isJob ? null : to.steps,
        params: { ...params, ...(beside && { beside }) } });
    },
    inSteps: (step) => steps === null || (step !== null && step >= steps[0] && step <= steps[1]),
    scope: () => {
      if (steps === null) return 'all steps';
      const [a, b] = steps.map((step) => run.words.steps[String(step)] ?? step);
      return steps[0] === steps[1] ? `step ${a}` : `steps ${a} to ${b}`;
    },
    announce: (text) => { live.textContent = text; },
  };
}

/** @param {string} id */
function openFinding(id) {
  const card = /** @type {HTMLDetailsElement|null} */ (document.getElementById(`finding-${id}`));
  if (!card) return;
  card.open = true;
  card.scrollIntoView();
  card.querySelector('summary')?.focus();
}

/** Whether `g` was pressed: the next key names a page. */
let leader = false;

/** What a key does alone. @type {Record<string, (event: KeyboardEvent) => void>} */
const KEYS = {
  g: () => {
    leader = true;
    setTimeout(() => { leader = false; }, 1500);
  },
  a: (event) => {
    if (ask.button.hidden) return;
    event.preventDefault();
    void ask.open();
  },
  '?': showHelp,
  '/': (event) => {
    const filter = /** @type {HTMLElement|null} */ (main.querySelector('input[type=search]'));
    if (filter) event.preventDefault();
    filter?.focus();
  },
};

/** @param {KeyboardEvent} event */
function onKey(event) {
  const target = /** @type {Element} */ (event.target);
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
  if (target.matches('input, select, textarea') || document.querySelector('dialog[open]')) return;
  if (!leader) {
    KEYS[event.key]?.(event);
    return;
  }
  leader = false;
  const page = pages.find((one) => one.key === event.key);
  if (page) {
    event.preventDefault();
    open(page.id);
  }
}

chooseTheme(chosenTheme());
choosePalette(chosenPalette());
document.body.append(live, helpDialog, ask.dialog, ...(capture ? [capture.dialog] : []));
put(
  /** @type {HTMLElement} */ (document.getElementById('app')),
  h('a', { class: 'skip', href: '#main', onclick: (/** @type {Event} */ event) => {
    event.preventDefault();
    main.focus();
  } }, 'Skip to the page'),
  h(
    'header',
    { class: 'top' },
    h('span', { class: 'brand' }, 'stepscope'),
    data.titles.length > 1 ? runChoice : h('bdi', { class: 'title' }, visible(data.titles[0] ?? '')),
    chip,
    h('span', { class: 'grow' }),
    capture && capture.button,
    ask.button,
    themeChoice,
    paletteChoice,
    h('button', { type: 'button', class: 'keyboard', onclick: showHelp }, 'Keys ', h('kbd', null, '?')),
  ),
  h('nav', { class: 'side', 'aria-label': 'Pages' }, links),
  h('div', { class: 'content' }, stripSlot, main),
);
document.addEventListener('keydown', onKey);
preparePrints();
document.addEventListener('stepscope:go', (event) => {
  const { page, run = place().run, ...params } = /** @type {CustomEvent} */ (event).detail;
  const told = Object.fromEntries(Object.entries(params).map(([key, value]) => [key, String(value)]));
  go({ ...place(), page, run, params: told });
});
for (const query of ['(prefers-color-scheme: dark)', '(prefers-contrast: more)']) {
  matchMedia(query).addEventListener('change', () => {
    if (chosenTheme() !== 'auto') return;
    showTheme();
    trace.setTheme();
  });
}
if (data.compared && !location.hash && !openingHash()) go({ ...place(), page: 'compare' }, true);
else void draw(place());
