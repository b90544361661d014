/** The boxes that lie over the viewer: help, commands, finding a track. */
import { copyText, h, put } from '../core/dom.js';
import { MODES } from './colours.js';
import { HELD_HELP } from './keys.js';
import { keyOf } from './layout.js';

/** @typedef {import('./app.js').App} App */
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
  };
  return {
    dialog,
    help: (/** @type {import('./keys.js').Binding[]} */ list) => open('Keys', [h('h3', null, 'Keys and mouse'),
      h('dl', { class: 'tv-keys' }, [...HELD_HELP, ...list.map((one) => [one.show, one.does])].flatMap(
        ([key, does]) => [h('dt', null, h('kbd', null, key)), h('dd', null, does)])),
      h('button', { type: 'button', onclick: () => dialog.close() }, 'Close')]),
    choose: (/** @type {string} */ label, /** @type {Choice[]} */ choices) => (
      open(label, [chooser(dialog, label, choices)])),
  };
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

/**
 * @param {App} app
 * @param {import('./keys.js').Binding[]} list
 * @param {{png: () => void, ask: (label: string) => string|null}} page
 * @returns {Choice[]}
 */
export function commands(app, list, page) {
  const matching = (/** @type {string} */ label, /** @type {(keys: string[]) => void} */ act) => () => {
    const text = page.ask(label);
    if (!text) return;
    try {
      const regex = new RegExp(text, 'i');
      act(app.meta.tracks.filter(({ group, label: name, holds }) => regex.test(`${group} ${name} ${holds ?? ''}`))
        .map(keyOf));
    } catch {
      app.say(`${text} is no regular expression`);
    }
  };
  const all = app.meta.tracks.map(keyOf);
  const { arrangement } = app;
  return [
    ...list.map((one) => ({ text: one.does, hint: one.show, run: () => one.run(false) })),
    ...MODES.map((mode) => ({ text: `colour by ${mode}`, run: () => app.setLook({ mode }) })),
    { text: 'colour-blind palette on or off',
      run: () => app.setLook({ palette: app.look.palette === 'blind' ? 'standard' : 'blind' }) },
    { text: 'pin tracks matching …', run: matching('Regular expression of the tracks to pin', (keys) => (
      app.arrange({ pinned: [...new Set([...arrangement.pinned, ...keys])] }))) },
    { text: 'hide tracks matching …', run: matching('Regular expression of the tracks to hide', (keys) => (
      app.arrange({ hidden: [...new Set([...arrangement.hidden, ...keys])] }))) },
    { text: 'show only tracks matching …', run: matching('Regular expression of the tracks to show', (keys) => (
      app.arrange({ hidden: all.filter((key) => !keys.includes(key)) }))) },
    { text: 'show all tracks', run: () => app.arrange({ hidden: [], filter: '', closed: [] }) },
    { text: 'unpin all tracks', run: () => app.arrange({ pinned: [] }) },
    { text: 'collapse all tracks to density', run: () => app.arrange({ collapsed: all, expanded: [] }) },
    { text: 'expand all tracks', run: () => app.arrange({ collapsed: [], expanded: all }) },
    { text: 'one scale for the counters of a group, on or off',
      run: () => app.arrange({ shared: !arrangement.shared }) },
    { text: 'save this layout as …', run: () => {
      const name = page.ask('Name of the layout');
      if (name) app.saveLayout(name);
    } },
    ...Object.entries(app.savedLayouts()).map(([name, kept]) => (
      { text: `layout ${name}`, run: () => app.arrange(kept) })),
    { text: 'save a picture (PNG)', run: page.png },
    { text: 'copy the link to this view', run: () => copyText(location.href) },
  ];
}

/** @param {App} app @returns {Choice[]} */
export function trackChoices(app) {
  return app.meta.tracks.map((track) => ({
    text: [app.sourceLabels[track.source], track.group, track.label, track.holds].filter(Boolean).join(' · '),
    run: () => {
      app.uncover(/** @type {any} */ ({ track: track.number, lane: track.firstLane, depth: 0 }));
      app.say(track.label);
    },
  }));
}
