/** What stands on a page until its profile is read: how far that is, where a server can say. */

import { h } from '../core/dom.js';

const ASKED_MS = 400;

/** @typedef {{stage: string, done: number, total: number}} Progress */

/**
 * It asks as long as it stands on the page.
 * @param {(() => Promise<Progress>)|null} progress
 */
export function waiting(progress) {
  const text = h('span', null, 'Reading the profile …');
  const bar = h('progress', { 'aria-label': 'Reading the profile', hidden: true });
  const made = h('p', { class: 'loading', role: 'status' }, text, bar);
  const ask = async () => {
    if (!made.isConnected || !progress) return;
    const now = await progress().catch(() => null);
    if (now?.stage) show(text, bar, now);
    setTimeout(ask, ASKED_MS);
  };
  setTimeout(ask, ASKED_MS);
  return made;
}

/**
 * @param {HTMLElement} text
 * @param {HTMLProgressElement} bar
 * @param {Progress} now
 */
function show(text, bar, { stage, done, total }) {
  text.textContent = `Reading the profile: ${stage} …`;
  bar.hidden = false;
  if (total) [bar.max, bar.value] = [total, done];
  else bar.removeAttribute('value');
}
