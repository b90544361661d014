/** Asking from any page: the panel of the viewer, over the trace that the page is of. */

import { h, put } from '../core/dom.js';
import { askPanel } from '../trace/asking.js';
import { startEngine } from '../trace/client.js';
import { parseAsked } from '../trace/groups.js';
import { ranksTogether } from './beside.js';

/** @typedef {import('../core/types.js').Context} Context */
/** @typedef {import('../core/types.js').Source} Source */
/** @typedef {import('../trace/client.js').Ask} Ask */

/**
 * The button for the page's top and its dialog; `at` is given the page that is shown.
 * @param {Source} source
 * @param {import('../core/queries.js').Queries} queries
 */
export function asking(source, queries) {
  /** @type {Context|null} */
  let context = null;
  let text = '';
  /** @type {Promise<{ask: Ask, stop: () => void}>|null} */
  let engine = null;
  const body = h('div', null);
  const close = () => dialog.close();
  const dialog = h('dialog', { class: 'help asking', 'aria-label': 'Ask the trace', onclose: () => {
    void engine?.then(({ stop }) => stop(), () => {});
    engine = null;
    put(body);
  } }, h('h2', { tabindex: -1 }, 'Ask the trace'), body,
  h('p', null, h('button', { type: 'button', onclick: close }, 'Close')));
  const open = async () => {
    const shown = context;
    if (!shown) return;
    dialog.showModal();
    const { runs, note, first, beside } = tracesOf(shown);
    put(body, h('p', { class: 'dim' }, note), await askPanel({
      sql: sqlOf(source, shown),
      groups: async (asked) => (await (engine ??= read(source, runs))).ask('groups', { text: asked }),
      text,
      setText: (asked) => { text = asked; },
      queries,
      shows: 'Show in the trace',
      show: (asked, stretches) => {
        close();
        const find = stretches ? '' : parseAsked(asked).search;
        shown.trace(first, { ask: asked, ...(find && { find }), ...(beside && { beside }) });
      },
    }));
    body.querySelector('textarea')?.focus();
  };
  const button = h('button', { type: 'button', onclick: open }, 'Ask ', h('kbd', null, 'a'));
  return {
    button,
    dialog,
    open,
    /** @param {Context} now */
    at: (now) => {
      context = now;
      // The viewer has the panel as one of its tabs.
      const isViewer = now.place.page === 'trace' && !now.report.analyses.ranks;
      button.hidden = isViewer || !(tracesOf(now).runs.length || sqlOf(source, now));
    },
  };
}

/** SQL reads one profile. @param {Source} source @param {Context} context */
function sqlOf({ sql }, { report, place }) {
  return sql && !report.analyses.ranks ? sql(place.run) : null;
}

/**
 * The traces that a page is of: of a job those of the ranks that are shown together.
 * @param {Context} context
 * @returns {{runs: number[], note: string, first: number|null, beside: string}}
 */
function tracesOf({ run, report, place }) {
  if (!report.analyses.ranks) return { runs: run.no_pack ? [] : [place.run], note: run.title, first: null, beside: '' };
  const [together] = ranksTogether(run);
  const ranks = together?.ranks ?? Object.keys(run.traces).slice(0, 1).map(Number);
  return {
    runs: ranks.map((rank) => run.traces[String(rank)]),
    note: `Of ${ranks.length > 1 ? 'ranks' : 'rank'} ${ranks.join(', ')}: the traces that stand in one view.`,
    first: ranks[0] ?? null,
    beside: together?.beside ?? '',
  };
}

/**
 * @param {Source} source
 * @param {number[]} runs
 */
async function read(source, runs) {
  const packs = await Promise.all(runs.map((at) => source.pack(at)));
  const engine = await startEngine(source.workerUrl(), () => {});
  await engine.ask('load', { packs: packs.flatMap((pack) => pack ?? []), options: {} });
  return engine;
}
