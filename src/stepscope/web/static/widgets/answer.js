/** The answer that the overview begins with: the first thing to change, where, how, and how to see and to prove it. */

import { copyText, h } from '../core/dom.js';
import { prose, remedy, visible } from '../core/text.js';
import { details, showInTrace } from './finding.js';

/** @typedef {import('../core/types.js').Finding} Finding */
/** @typedef {import('../core/types.js').Context} Context */

/**
 * @param {Finding} finding the first of those that are told
 * @param {Context} context
 */
export function answer(finding, context) {
  const words = context.words.findings[finding.id];
  const [first] = finding.evidence;
  const place = words.places[0];
  const [begin = finding.id] = context.report.plan;
  const isFirst = begin === finding.id;
  return h(
    'section',
    { class: 'panel finding answer', 'aria-labelledby': 'answer-title' },
    h('header', null, h('h2', { id: 'answer-title' }, `${isFirst ? 'Change this first' : 'Saves most'}: `,
      h('span', { class: 'title' }, ...prose(finding.title))), h('p', { class: 'saving' }, words.saving)),
    place ? h('div', { class: 'row' }, h('b', null, 'where'), h('div', null,
      h('bdi', { class: 'name' }, visible(place)), words.source ? lines(words.source) : null)) : null,
    finding.fix ? h('div', { class: 'row' }, h('b', null, 'fix'), h('div', { class: 'cure' }, ...brief(finding.fix)))
      : null,
    h('div', { class: 'deeds' },
      first && context.hasTrace(finding.rank) ? h('button', { type: 'button', class: 'primary',
        onclick: () => showInTrace(context, finding, first) }, 'Show in trace') : null,
      words.proof ? proof(words.proof) : null),
    details(finding, context),
  );
}

/**
 * What is done first: the remedy's first paragraph with the code behind it; the details have the rest.
 * @param {string} fix
 */
function brief(fix) {
  const [one, two] = remedy(fix);
  return two?.tagName === 'PRE' ? [one, two] : [one];
}

/**
 * The user's lines around the place, that one marked.
 * @param {{first: number, line: number, lines: string[]}} source
 */
function lines({ first, line, lines: shown }) {
  return h('pre', { class: 'source', tabindex: 0, 'aria-label': 'Source' }, shown.map((text, at) => h(
    'span', { class: first + at === line ? 'here' : '' },
    h('i', null, String(first + at).padStart(String(first + shown.length).length)), ` ${visible(text)}\n`)));
}

/**
 * The command that tries the cure on the job, ready to be copied.
 * @param {string} command
 */
function proof(command) {
  const copy = h('button', { type: 'button', onclick: async () => {
    copy.textContent = (await copyText(command)) ? 'Copied: run it where the job runs' : 'Not allowed here';
  } }, 'Prove it');
  const told = h('code', { title: visible(command) }, h('bdi', null, visible(command)));
  return h('span', { class: 'proof' }, copy, told);
}
