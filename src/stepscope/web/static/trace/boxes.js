/** The boxes that lie over the viewer: help, commands, finding a track. */
import { h, put } from '../core/dom.js';
import { HELD_HELP } from './keys.js';

/** @typedef {{text: string, hint?: string, run: (rest: string) => void}} Choice */

const SHOWN = 60;

/**
 * How well a text fits the letters of a query in their order; negative where it does not.
 * @param {string} query
 * @param {string} text
 */
export function fuzzy(query, text) {
  const [wanted, low] = [query.toLowerCase().replaceAll(' ', ''), text.toLowerCase()];
  let at = -1;
  let score = 0;
  for (const letter of wanted) {
    const next = low.indexOf(letter, at + 1);
    if (next < 0) return -1;
    // Letters that follow one another, or begin a word, count most.
    score += next === at + 1 ? 3 : next === 0 || /[\s:_./·-]/.test(low[next - 1]) ? 2 : 0;
    at = next;
  }
  return score + (low.includes(query.toLowerCase()) ? 10 : 0) - text.length / 1000;
}

/**
 * @param {HTMLElement} root
 * @param {HTMLElement} back what gets the focus afterwards
 */
export function boxes(root, back) {
  const dialog = h('dialog', { class: 'tv-dialog', onclose: () => back.focus(),
    onclick: (/** @type {Event} */ event) => { if (event.target === dialog) dialog.close(); } });
  root.append(dialog);
  const open = (/** @type {string} */ label, /** @type {Node[]} */ content) => {
    put(dialog, content);
    dialog.setAttribute('aria-label', label);
    if (!dialog.open) dialog.showModal();
    // The browser scrolls to what it gives the focus.
    dialog.scrollTop = 0;
  };
  return {
    dialog,
    help: (/** @type {import('./keys.js').Binding[]} */ list) => open('Keys', [
      h('h3', { tabindex: '-1', autofocus: true }, 'Keys and mouse'),
      h('dl', { class: 'tv-keys' }, [...HELD_HELP, ...list.map((one) => [one.show, one.does])].flatMap(
        ([key, does]) => [h('dt', null, h('kbd', null, key)), h('dd', null, does)])),
      h('button', { type: 'button', onclick: () => dialog.close() }, 'Close')]),
    choose: (/** @type {string} */ label, /** @type {Choice[]} */ choices) => (
      open(label, [chooser(dialog, label, choices)])),
    ask: (/** @type {string} */ label, /** @type {(text: string) => void} */ done) => (
      open(label, [question(dialog, label, done)])),
  };
}

/**
 * Asks for a text; frames may not open the browser's own box.
 * @param {HTMLDialogElement} dialog
 * @param {string} label
 * @param {(text: string) => void} done
 */
function question(dialog, label, done) {
  const input = h('input', { type: 'text', 'aria-label': label, placeholder: label, maxlength: 500, autofocus: true });
  return h('form', { method: 'dialog', onsubmit: (/** @type {Event} */ event) => {
    event.preventDefault();
    dialog.close();
    if (input.value.trim()) done(input.value.trim());
  } }, input, h('div', { class: 'tv-actions' }, h('button', { type: 'submit' }, 'OK'),
    h('button', { type: 'button', onclick: () => dialog.close() }, 'Cancel')));
}

/**
 * @param {HTMLDialogElement} dialog
 * @param {string} label
 * @param {Choice[]} choices
 */
function chooser(dialog, label, choices) {
  let shown = choices.slice(0, SHOWN);
  let at = 0;
  const list = h('ul', { class: 'tv-choices', role: 'listbox', id: 'tv-choices' });
  const input = h('input', { type: 'text', placeholder: label, 'aria-label': label, role: 'combobox',
    'aria-controls': 'tv-choices', 'aria-expanded': 'true', autofocus: true });
  const run = (/** @type {Choice} */ choice) => {
    dialog.close();
    choice.run(input.value);
  };
  const draw = () => {
    put(list, shown.map((choice, row) => h('li', { role: 'option', 'aria-selected': String(row === at),
      id: `tv-choice-${row}`, onclick: () => run(choice) }, choice.text,
    choice.hint ? h('span', { class: 'tv-dim' }, ` ${choice.hint}`) : null)));
    input.setAttribute('aria-activedescendant', `tv-choice-${at}`);
    list.children[at]?.scrollIntoView({ block: 'nearest' });
  };
  input.addEventListener('input', () => {
    const scored = choices.map((choice) => ({ choice, score: fuzzy(input.value, choice.text) }));
    shown = scored.filter((one) => one.score >= 0 || !input.value).sort((a, b) => b.score - a.score)
      .slice(0, SHOWN).map((one) => one.choice);
    at = 0;
    draw();
  });
  input.addEventListener('keydown', (event) => {
    if (event.key === 'Enter' && shown[at]) run(shown[at]);
    else if (event.key === 'ArrowDown') at = Math.min(shown.length - 1, at + 1);
    else if (event.key === 'ArrowUp') at = Math.max(0, at - 1);
    else return;
    event.preventDefault();
    draw();
  });
  draw();
  return h('div', null, input, list);
}
