/** Every key of the viewer, in one list: what the help shows is what works. */

import { bringTogether } from './align.js';
import { fold } from './folds.js';
import { keyOf } from './layout.js';

/** @typedef {import('./app.js').App} App */
/** @typedef {{help: () => void, commands: () => void, search: () => void, tracks: () => void}} Boxes */
/** @typedef {{keys: string[], show: string, does: string, run: (shift: boolean) => void}} Binding */

const ZOOM = 0.035;
const PAN = 0.03;
const FAST = 3;
/** As long as the page waits for the letter after `g`. */
const LEADS_MS = 1500;

/**
 * Keys that act as long as they are held, by their place on the keyboard: other layouts have other letters there.
 * @type {Record<string, [('zoom'|'pan'|'scroll'), number]>}
 */
const HELD = { KeyW: ['zoom', -1], KeyS: ['zoom', 1], KeyA: ['pan', -1], KeyD: ['pan', 1] };

/**
 * @param {App} app
 * @param {Boxes} boxes
 * @returns {Binding[]}
 */
export function bindings(app, boxes) {
  const bind = (/** @type {string[]} */ keys, /** @type {string} */ show, /** @type {string} */ does,
    /** @type {(shift: boolean) => void} */ run) => ({ keys, show, does, run });
  return [
    bind(['ArrowLeft'], '←', 'pan left', (shift) => app.view.pan(shift ? -0.5 : -0.1)),
    bind(['ArrowRight'], '→', 'pan right', (shift) => app.view.pan(shift ? 0.5 : 0.1)),
    bind(['ArrowUp'], '↑', 'scroll up', (shift) => app.scrollTo(app.scroll - (shift ? 300 : 60))),
    bind(['ArrowDown'], '↓', 'scroll down', (shift) => app.scrollTo(app.scroll + (shift ? 300 : 60))),
    bind(['f', 'F'], 'F', 'centre the selection, again: fit it', () => fit(app)),
    bind(['0'], '0', 'whole trace', () => app.view.whole()),
    bind(['Backspace', 'h', 'Control+z', 'Meta+z', 'Alt+ArrowLeft'], 'Backspace, Ctrl+Z, Alt+←', 'view before',
      () => app.view.back()),
    bind(['Shift+Backspace', 'H', 'Control+Z', 'Meta+Z', 'Control+y', 'Alt+ArrowRight'],
      'Shift+Backspace, Ctrl+Y, Alt+→', 'view after', () => app.view.forward()),
    bind(['.', 'Period'], '.', 'next slice on the track', () => app.go('beside', 1)),
    bind([',', 'Comma'], ',', 'slice before on the track', () => app.go('beside', -1)),
    bind(['PageUp', '-'], '-', 'slice around', () => app.go('across', -1)),
    bind(['PageDown', '+'], '+', 'first slice inside', () => app.go('across', 1)),
    bind([']', 'BracketRight'], ']', 'along the flow: what it launched', () => app.go('flow', 1)),
    bind(['[', 'BracketLeft'], '[', 'back along the flow: what launched it', () => app.go('flow', -1)),
    bind(['o'], 'O', 'next of the same op', () => app.go('same', 1)),
    bind(['O'], 'Shift+O', 'one before of the same op', () => app.go('same', -1)),
    bind(['n'], 'N', 'next hit of the search', () => app.go('hit', 1)),
    bind(['N'], 'Shift+N', 'hit before', () => app.go('hit', -1)),
    bind(['x'], 'X', 'next step', () => app.step(1)),
    bind(['z'], 'Z', 'step before', () => app.step(-1)),
    bind(['i'], 'I', 'longest idle gap of the device, then the next shorter', () => nextGap(app, 1)),
    bind(['I'], 'Shift+I', 'next longer idle gap', () => nextGap(app, -1)),
    bind(['e'], 'E', 'select the time of the selection, or all in sight, on all tracks: a table',
      () => area(app)),
    bind(['m'], 'M', 'mark the selection for now', () => app.mark(false)),
    bind(['M'], 'Shift+M', 'keep a note here', () => keepNote(app)),
    bind(['p'], 'P', 'pin the track of the selection', () => pin(app)),
    bind(['u'], 'U', 'only the track of the selection, again: all', () => solo(app)),
    bind(['j'], 'J', 'unfold streams of one kind, again: fold them', () => fold(app)),
    bind(['b'], 'B', 'begin both runs together at the selected op', () => void bringTogether(app)),
    bind(['c'], 'C', 'next way of colouring', () => recolour(app)),
    bind(['v'], 'V', 'what dragging does: pan or, as in Perfetto, select an area', () => app.swapDrag()),
    bind(['/'], '/', 'search slices', () => boxes.search()),
    bind(['t'], 'T', 'find a track', () => boxes.tracks()),
    bind(['Control+k', 'Meta+k', ':'], 'Ctrl+K', 'commands', () => boxes.commands()),
    bind(['?'], '?', 'this list', () => boxes.help()),
    bind(['Escape'], 'Esc', 'select nothing', () => { app.select(null); app.selectArea(null); }),
  ];
}

export const HELD_HELP = [['W / S', 'zoom in, out (Shift: faster)'], ['A / D', 'pan left, right (Shift: faster)'],
  ['wheel', 'scroll; with Ctrl or a pinch: zoom; with Shift: pan'],
  ['drag', 'pan; with Shift: select an area (V: the other way round)'], ['two fingers', 'zoom, pan'],
  ['drag on the ruler', 'measure time, ends snap to edges']];

/**
 * @param {App} app
 * @param {HTMLElement} element
 * @param {Binding[]} list
 * @returns {() => void} stops listening
 */
export function listen(app, element, list) {
  const byKey = new Map(list.flatMap((one) => one.keys.map((key) => [key, one])));
  const isPages = pagesKeys();
  const holding = holdKeys(app);
  const down = (/** @type {KeyboardEvent} */ event) => {
    if (isTyping(event.target) || inBox(event.target) || isPages(event)) return;
    const run = HELD[event.code] && !prefixOf(event) ? () => holding.hold(event) : bindingOf(byKey, event)?.run;
    if (!run) return;
    run(event.shiftKey);
    event.preventDefault();
  };
  element.addEventListener('keydown', down);
  element.addEventListener('keyup', holding.release);
  element.addEventListener('focusout', holding.drop);
  window.addEventListener('blur', holding.drop);
  return () => window.removeEventListener('blur', holding.drop);
}

/** What is held down beside a key, as bindings write it. @param {KeyboardEvent} event */
function prefixOf(event) {
  return event.altKey ? 'Alt+' : event.ctrlKey ? 'Control+' : event.metaKey ? 'Meta+' : '';
}

/**
 * A key with Control, Meta or Alt is only for a binding that names it.
 * @param {Map<string, Binding>} byKey
 * @param {KeyboardEvent} event
 */
function bindingOf(byKey, event) {
  const prefix = prefixOf(event);
  const binding = (event.shiftKey ? byKey.get(`Shift+${event.key}`) : undefined) ?? byKey.get(prefix + event.key)
    ?? (prefix ? undefined : byKey.get(event.code));
  return binding?.keys.some((key) => key.startsWith(prefix)) ? binding : undefined;
}

/**
 * `g` and the letter behind it are the page's: they lead to another one.
 * @returns {(event: KeyboardEvent) => boolean}
 */
function pagesKeys() {
  let leader = -Infinity;
  return (event) => {
    const follows = event.timeStamp - leader < LEADS_MS;
    const leads = !follows && event.key === 'g' && !prefixOf(event);
    if (follows) leader = -Infinity;
    if (leads) leader = event.timeStamp;
    return follows || leads;
  };
}

/**
 * Moves the view in every frame as long as a key is held.
 * @param {App} app
 */
function holdKeys(app) {
  /** @type {Map<string, boolean>} */
  const held = new Map();
  let last = 0;
  const move = (/** @type {number} */ now) => {
    if (!held.size) return;
    const frames = Math.min((now - last) / 16.7, 4);
    last = now;
    for (const [code, shift] of held) {
      const [what, way] = HELD[code];
      const strength = way * frames * (shift ? FAST : 1);
      if (what === 'zoom') app.view.zoom(Math.exp(strength * ZOOM), 0.5);
      else app.view.pan(strength * PAN);
    }
    requestAnimationFrame(move);
  };
  const hold = (/** @type {KeyboardEvent} */ event) => {
    if (!held.size) {
      last = performance.now();
      requestAnimationFrame(move);
    }
    held.set(event.code, event.shiftKey);
  };
  const release = (/** @type {KeyboardEvent} */ event) => held.delete(event.code);
  return { hold, release, drop: () => held.clear() };
}

/** @param {EventTarget|null} target */
function isTyping(target) {
  return target instanceof HTMLInputElement || target instanceof HTMLTextAreaElement
    || target instanceof HTMLSelectElement;
}

/** Whether a key is for a box that lies over the viewer. @param {EventTarget|null} target */
function inBox(target) {
  return target instanceof Element && target.closest('dialog') !== null;
}

/** @param {App} app */
function fit(app) {
  const { range, view } = app;
  if (!range) return;
  const [middle, before] = [(range.begin + range.end) / 2, view.begin];
  view.set(middle - view.span / 2, middle + view.span / 2);
  // It stood there already, or could not come nearer.
  if (Math.abs(view.begin - before) < view.span / 200) view.fit(range.begin, Math.max(range.end, range.begin + 1));
}

/** @param {App} app */
function area(app) {
  const { begin, end } = app.range ?? app.view;
  app.selectArea({ begin: Math.round(begin), end: Math.round(Math.max(end, begin + 1)), tracks: app.shownTracks });
}

/** A note here, whose name is asked for. @param {App} app */
function keepNote(app) {
  app.naming = app.mark(true);
  app.open('notes');
}

/** @param {App} app */
function solo(app) {
  const { selection } = app;
  if (selection) app.solo(keyOf(app.meta.tracks[selection.track]));
  else app.say('Nothing is selected: click a slice first');
}

/** @param {App} app */
function pin(app) {
  const number = app.selection?.track;
  const place = app.layout.items.find(({ tracks }) => tracks.some((track) => track.number === number));
  if (place && number !== undefined) app.toggle('pinned', keyOf(app.meta.tracks[number]));
}

/** @param {App} app */
function recolour(app) {
  const modes = /** @type {const} */ (['category', 'op', 'precision', 'rank']);
  const mode = modes[(modes.indexOf(app.look.mode) + 1) % modes.length];
  app.setLook({ mode });
  app.say(`Coloured by ${mode}`);
}

/**
 * @param {App} app
 * @param {number} way
 */
function nextGap(app, way) {
  if (app.meta.tracks.some((track) => track.type === 'idle' && track.laneCount)) app.go('gap', way);
  else app.say('No device was recorded, so there are no gaps');
}
