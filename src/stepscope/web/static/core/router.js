/** Where the reader is: page, run, steps and what a page was asked to show; in the URL's hash, where there is one. */

import { readQueries, toldQueries } from './queries.js';

/** @typedef {import('./types.js').Place} Place */

/**
 * The place a hash means: `#/ops?run=1&steps=3-7&device=0`, steps by the numbers
 * that they have in the job. What it does not say is the default.
 * @param {string} hash
 * @returns {Place}
 */
export function parsed(hash) {
  const match = /^#\/([a-z]+)(?:\?(.*))?$/s.exec(hash);
  const params = Object.fromEntries(new URLSearchParams(match?.[2] ?? ''));
  const { run, steps, queries, ...rest } = params;
  const range = /^(\d{1,15})-(\d{1,15})$/.exec(steps ?? '');
  return {
    page: match?.[1] ?? 'overview',
    run: /^\d{1,4}$/.test(run ?? '') ? Number(run) : 0,
    steps: range ? [Number(range[1]), Number(range[2])] : null,
    params: rest,
    queries: readQueries(queries),
  };
}

/**
 * The hash of a place; `parsed` gives the place back.
 * @param {Place} place
 */
export function written({ page, run, steps, params, queries }) {
  const query = new URLSearchParams(params);
  if (run) query.set('run', String(run));
  if (steps) query.set('steps', `${steps[0]}-${steps[1]}`);
  if (queries?.length) query.set('queries', toldQueries(queries));
  const text = query.toString();
  return `#/${page}${text ? `?${text}` : ''}`;
}

/**
 * Remembers the place, and says when it changed. Frames without an address of their own keep it in memory only.
 * @param {(place: Place) => void} changed
 * @param {string} opening the hash of the place to begin at where the address says none
 */
export function router(changed, opening) {
  let hash = location.hash || opening;
  addEventListener('hashchange', () => {
    if (location.hash === hash) return;
    hash = location.hash;
    changed(parsed(hash));
  });
  /**
   * Be at a place. With `replace` no way back is kept; a `silent` change is not told.
   * @param {Place} place
   * @param {boolean} [replace]
   * @param {boolean} [silent]
   */
  const go = (place, replace = false, silent = false) => {
    hash = written({ queries: parsed(hash).queries, ...place });
    try {
      if (replace) history.replaceState(null, '', hash);
      else history.pushState(null, '', hash);
    } catch {
      // The frame of a notebook has no address to write to.
    }
    if (!silent) changed(place);
  };
  addEventListener('popstate', () => {
    if (location.hash === hash) return;
    hash = location.hash;
    changed(parsed(hash));
  });
  return { place: () => parsed(hash), go };
}
