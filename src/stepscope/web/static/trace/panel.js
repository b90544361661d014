/** The panel below the tracks: one tab for each way of looking at what is selected. */
import { h, put } from '../core/dom.js';
import { askTab } from './ask_tab.js';
import { areaTab } from './area_tab.js';
import { criticalTab } from './critical_tab.js';
import { detailsTab } from './details_tab.js';
import { flameTab } from './flame_tab.js';
import { legendTab } from './legend_tab.js';
import { findingsTab, gapsTab, searchTab } from './lists_tabs.js';
import { notesTab } from './notes_tab.js';

/** @typedef {import('./app.js').App} App */
/** @typedef {{id: string, title: string, on: import('./app.js').Topic[],
 *   make: (app: App) => Promise<(Node|null)[]>}} Tab */

/** @type {Tab[]} */
const TABS = [
  { id: 'details', title: 'Details', on: ['selection'], make: detailsTab },
  { id: 'area', title: 'Range', on: ['area'], make: areaTab },
  { id: 'ask', title: 'Ask', on: [], make: askTab },
  { id: 'gaps', title: 'Gaps', on: ['area', 'view'], make: gapsTab },
  { id: 'critical', title: 'Critical path', on: [], make: criticalTab },
  { id: 'flame', title: 'Flame graph', on: ['area', 'selection', 'view'], make: flameTab },
  { id: 'search', title: 'Search', on: ['search'], make: searchTab },
  { id: 'findings', title: 'Findings', on: [], make: findingsTab },
  { id: 'notes', title: 'Notes', on: [], make: notesTab },
  { id: 'legend', title: 'Colours', on: ['look'], make: legendTab },
];
const SETTLED_MS = 250;

/** @param {App} app */
export function panel(app) {
  const body = h('div', { class: 'tv-panel-body', role: 'tabpanel', tabindex: '0' });
  const keys = (/** @type {KeyboardEvent} */ event) => along(app, event);
  const buttons = TABS.map((tab) => h('button', { type: 'button', role: 'tab', id: `tv-tab-${tab.id}`,
    // What is being written in the tab that is open stays.
    onclick: () => void (app.tab !== tab.id && app.open(tab.id)), onkeydown: keys }, tab.title));
  let made = 0;
  /** @type {ReturnType<typeof setTimeout>|undefined} */
  let later;
  const draw = async () => {
    made += 1;
    const mine = made;
    const tab = TABS.find((one) => one.id === app.tab) ?? TABS[0];
    buttons.forEach((button, at) => {
      button.setAttribute('aria-selected', String(TABS[at] === tab));
      button.tabIndex = TABS[at] === tab ? 0 : -1;
    });
    body.setAttribute('aria-labelledby', `tv-tab-${tab.id}`);
    element.classList.toggle('tv-panel-rests', tab.id === 'details' && !app.selection && !app.measure);
    try {
      const content = await tab.make(app);
      if (mine === made) put(body, content);
    } catch (error) {
      if (mine === made) put(body, h('p', { class: 'tv-bad', role: 'alert' }, `This could not be shown: ${error}`));
    }
  };
  app.on(['tab'], draw);
  for (const topic of /** @type {const} */ (['selection', 'area', 'view', 'search', 'look'])) {
    app.on([topic], () => {
      const tab = TABS.find((one) => one.id === app.tab);
      if (!tab?.on.includes(topic) || (topic === 'view' && app.area)) return;
      clearTimeout(later);
      // The view moves many times a second: what follows it waits until it stands.
      if (topic === 'view') later = setTimeout(draw, SETTLED_MS);
      else draw();
    });
  }
  const element = h('div', { class: 'tv-panel' }, h('div', { class: 'tv-tabs', role: 'tablist' }, buttons), body);
  draw();
  return element;
}

/**
 * @param {App} app
 * @param {KeyboardEvent} event
 */
function along(app, event) {
  const way = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (!way) return;
  event.preventDefault();
  event.stopPropagation();
  const at = TABS.findIndex((tab) => tab.id === app.tab);
  app.open(TABS[(at + way + TABS.length) % TABS.length].id);
  document.getElementById(`tv-tab-${app.tab}`)?.focus();
}
