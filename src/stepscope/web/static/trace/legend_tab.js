/** What the colours of the slices say. */
import { h } from '../core/dom.js';

/** @typedef {import('./app.js').App} App */

/** @param {App} app */
export async function legendTab(app) {
  const listed = await app.ask('legend', null);
  const groups = [...new Set(listed.map((one) => one.group))];
  const byName = app.look.mode === 'op' ? 'Every name has a colour of its own, the same in any trace.'
    : 'Names of one kind differ a little.';
  return [
    h('p', { class: 'tv-dim' }, `Coloured by ${app.look.mode}. ${byName} Where a pixel holds several slices, or idle `
      + 'time, its colour is their mix.'),
    h('div', { class: 'tv-columns' }, groups.map((group) => h('section', null, h('h4', null, group),
      h('ul', { class: 'tv-legend' }, listed.filter((one) => one.group === group).map(entry))))),
  ];
}

/** @param {{label: string, colour: [number, number, number]}} one */
function entry({ label, colour }) {
  return h('li', null, h('span', { class: 'tv-swatch', style: { background: `rgb(${colour.join(',')})` } }), label);
}
