/** The bar over the viewer. */
import { h } from '../core/dom.js';
import { formatCount, formatNs } from '../core/units.js';
import { MODES } from './colours.js';
import { sums } from './lists_tabs.js';

const SETTLED_MS = 200;

/**
 * @param {import('./app.js').App} app
 * @param {{help: () => void, commands: () => void, share: () => void, back: () => void}} open `back`: to the tracks
 */
export function toolbar(app, open) {
  const { search, count } = searchBox(app, open.back);
  const button = (/** @type {string} */ text, /** @type {string} */ title, /** @type {() => void} */ act) => (
    h('button', { type: 'button', title, 'aria-label': `${text}: ${title}`, onclick: act }, text));
  const element = h('div', { class: 'tv-bar', role: 'toolbar', 'aria-label': 'Trace' },
    search, count,
    button('↑', 'Hit before (Shift+N)', () => app.go('hit', -1)), button('↓', 'Next hit (N)', () => app.go('hit', 1)),
    h('span', { class: 'tv-gapper' }), inSight(app),
    button('‹ step', 'Step before (Z)', () => app.step(-1)), button('step ›', 'Next step (X)', () => app.step(1)),
    button('←', 'View before (Backspace)', () => app.view.back()),
    button('→', 'View after (Shift+Backspace)', () => app.view.forward()),
    button('all', 'Whole trace (0)', () => app.view.whole()),
    trackFilter(app), modeChoice(app), dragChoice(app),
    button('share', 'Copy the link, save the report or a picture', open.share),
    button('⋯', 'Commands (Ctrl+K)', open.commands), button('?', 'Keys (?)', open.help));
  return { element, search, help: open.help, commands: open.commands };
}

/**
 * The box of the search, and how much it found.
 * @param {import('./app.js').App} app
 * @param {() => void} back to the tracks
 */
function searchBox(app, back) {
  const search = h('input', { type: 'search', class: 'tv-search', 'aria-label': 'Search slices',
    placeholder: 'Search: kind:kernel -name:memcpy dur>100us' });
  const count = h('span', { class: 'tv-count', role: 'status' });
  /** @type {ReturnType<typeof setTimeout>|undefined} */
  let later;
  search.addEventListener('input', () => {
    clearTimeout(later);
    later = setTimeout(() => app.search(search.value), SETTLED_MS);
  });
  search.addEventListener('keydown', async (event) => {
    if (event.key === 'Enter') {
      event.preventDefault();
      if (app.searched !== search.value) await app.search(search.value);
      app.open('search');
      app.go('hit', event.shiftKey ? -1 : 1);
    } else if (event.key === 'Escape') {
      // What was searched stays: browsers clear the box.
      event.preventDefault();
      back();
    }
    event.stopPropagation();
  });
  app.on(['search'], () => {
    if (search.value !== app.searched) search.value = app.searched;
    count.textContent = !app.found ? '' : app.found.error ? 'cannot be understood'
      : app.found.runs.length > 1 ? sums(app.found)
        : `${formatCount(app.found.count)} · ${formatNs(app.found.total)}`;
    count.title = app.found?.error ?? '';
  });
  return { search, count };
}

/** @param {import('./app.js').App} app */
function trackFilter(app) {
  const filter = h('input', { type: 'search', class: 'tv-filter', placeholder: 'Tracks',
    'aria-label': 'Show tracks matching', oninput: () => app.arrange({ filter: filter.value }) });
  app.on(['layout'], () => { if (filter.value !== app.arrangement.filter) filter.value = app.arrangement.filter; });
  return filter;
}

/** @param {import('./app.js').App} app */
function modeChoice(app) {
  const mode = h('select', { 'aria-label': 'Colour by', onchange: () => (
    app.setLook({ mode: /** @type {import('./colours.js').Mode} */ (mode.value) })) },
  MODES.map((one) => h('option', { value: one }, `by ${one}`)));
  app.on(['look'], () => { mode.value = app.look.mode; });
  return mode;
}

/** @param {import('./app.js').App} app */
function inSight(app) {
  const range = h('span', { class: 'tv-range' });
  app.on(['view'], () => { range.textContent = `${formatNs(Math.round(app.view.span))} in sight`; });
  return range;
}

/** @param {import('./app.js').App} app */
function dragChoice(app) {
  const does = 'What dragging does; with Shift it does the other (V)';
  const drag = h('button', { type: 'button', title: does, onclick: () => app.swapDrag() });
  const named = () => {
    drag.textContent = app.dragSelects ? 'drag: select' : 'drag: pan';
    drag.setAttribute('aria-label', `${drag.textContent}: ${does}`);
  };
  app.on(['drag'], named);
  named();
  return drag;
}
