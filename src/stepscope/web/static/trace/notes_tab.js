/** The notes of the trace: made, named, shown and deleted. */
import { h } from '../core/dom.js';
import { formatNs } from '../core/units.js';

/** @typedef {import('./app.js').App} App */
/** @typedef {import('./notes.js').Note} Note */

/** @param {App} app */
export async function notesTab(app) {
  const text = h('input', { type: 'text', 'aria-label': 'Text of the note', placeholder: 'Text of the note',
    maxlength: 200, onkeydown: (/** @type {KeyboardEvent} */ event) => { if (event.key === 'Enter') add(); } });
  const add = () => app.mark(true, text.value.trim());
  const lines = app.notes.map((note) => line(app, note));
  if (app.naming) askName(lines[app.notes.indexOf(app.naming)]);
  app.naming = null;
  return [
    h('div', { class: 'tv-actions' }, text, h('button', { type: 'button', onclick: add }, 'Add at the selection')),
    h('ul', { class: 'tv-stack' }, lines),
    app.notes.length ? null : h('p', { class: 'tv-dim' }, 'M marks the selection for now, Shift+M keeps a note.'),
  ];
}

/**
 * The keyboard goes to the name of a note once it is shown, and back to the tracks after Enter or Escape.
 * @param {HTMLElement|undefined} item
 */
function askName(item) {
  const name = item?.querySelector('input');
  if (!name) return;
  const tracks = () => /** @type {HTMLElement|null|undefined} */ (
    name.closest('.tv-root')?.querySelector('.tv-stage'))?.focus();
  name.addEventListener('keydown', (event) => {
    if (event.key === 'Escape' || event.key === 'Enter') tracks();
  });
  requestAnimationFrame(() => name.select());
}

/**
 * @param {App} app
 * @param {Note} note
 */
function line(app, note) {
  const others = () => app.notes.filter((one) => one !== note);
  const end = note.end ?? note.time;
  const name = h('input', { type: 'text', 'aria-label': 'Name of the note', value: note.text, maxlength: 200,
    onchange: () => app.setNotes([...others(), { ...note, text: name.value.trim() }]) });
  const button = (/** @type {string} */ title, /** @type {() => void} */ act) => (
    h('button', { type: 'button', onclick: act }, title));
  return h('li', { class: 'tv-actions' },
    note.kept ? name : h('span', null, 'marked for now'),
    h('span', { class: 'tv-dim' }, `at ${formatNs(note.time - app.meta.begin)}`
      + `${note.end === null ? '' : `, ${formatNs(note.end - note.time)}`}`),
    button('Show', () => app.view.fit(note.time, Math.max(end, note.time + 1), 1)),
    button('Select', () => app.selectArea({ begin: note.time, end: Math.max(end, note.time + 1),
      tracks: app.shownTracks })),
    note.kept ? null : button('Keep', () => app.setNotes([...others(), { ...note, kept: true, text: 'note' }])),
    button('Delete', () => app.setNotes(others())));
}
