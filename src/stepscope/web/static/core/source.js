/** Where the data comes from: the page itself (a report file, a notebook) or the server behind it. */

/** @typedef {import('./types.js').Source} Source */
/** @typedef {import('./types.js').Run} Run */

import { written } from './router.js';
import { ownPieces, servedPieces } from './saved.js';

/** @returns {Source} */
export function source() {
  return document.querySelector('script.run') ? inline() : served();
}

/** @returns {Source} */
function inline() {
  const runs = [...document.querySelectorAll('script.run')].map(
    (script) => /** @type {Run} */ (JSON.parse(script.textContent ?? '')),
  );
  const compared = document.querySelector('script.comparison')?.textContent;
  /** @type {string|null} */
  let workerUrl = null;
  return {
    titles: runs.map((run) => run.title),
    run: async (at) => runs[at],
    progress: null,
    pack: async (at) => {
      await parsed();
      const chunks = [...document.querySelectorAll('script.pack')].filter(
        (script) => /** @type {HTMLElement} */ (script).dataset.run === String(at),
      );
      return chunks.length ? joined(chunks.map((chunk) => bytes(chunk.textContent ?? ''))) : null;
    },
    arguments: null,
    sql: null,
    saved: async (_runs, place) => ownPieces(written(place)),
    compared: Boolean(compared),
    picks: false,
    comparison: async () => (compared ? JSON.parse(compared) : null),
    workerUrl: () => {
      const text = document.getElementById('worker')?.textContent;
      if (!text) return null;
      workerUrl ??= URL.createObjectURL(new Blob([text], { type: 'text/javascript' }));
      return workerUrl;
    },
    capture: null,
  };
}

/** The document has all its packs: they stand behind the script. */
async function parsed() {
  if (document.readyState !== 'loading') return;
  await new Promise((resolve) => { document.addEventListener('DOMContentLoaded', resolve, { once: true }); });
}

/**
 * @param {string} base64
 * @returns {Uint8Array}
 */
export function bytes(base64) {
  const own = /** @type {{fromBase64?: (text: string) => Uint8Array}} */ (/** @type {unknown} */ (Uint8Array));
  if (own.fromBase64) return own.fromBase64(base64);
  const text = atob(base64);
  const out = new Uint8Array(text.length);
  for (let at = 0; at < text.length; at++) out[at] = text.charCodeAt(at);
  return out;
}

/**
 * @param {Uint8Array[]} parts
 * @returns {ArrayBuffer}
 */
function joined(parts) {
  const out = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    out.set(part, at);
    at += part.length;
  }
  return out.buffer;
}

/** @returns {Source} */
function served() {
  /** @type {{titles: string[], comparison: boolean, capture: {missing: string|null}|null}} */
  const { titles, comparison, capture } = JSON.parse(document.getElementById('served')?.textContent ?? '');
  /** @type {Map<string, Promise<import('./types.js').Comparison>>} */
  const compared = new Map();
  /** @type {Map<number, Promise<Run>>} */
  const runs = new Map();
  return {
    titles,
    run: (at) => {
      const known = runs.get(at) ?? answer(`api/${at}/report`).then((response) => response.json());
      runs.set(at, known);
      known.catch(() => runs.delete(at));
      return known;
    },
    progress: (at) => answer(`api/${at}/progress`).then((response) => response.json()),
    pack: (at) => answer(`api/${at}/pack`).then((response) => response.arrayBuffer()),
    arguments: (at, ids) => answer(`api/${at}/arguments?ids=${ids.join(',')}`).then((response) => response.json()),
    sql: (at) => ({
      query: (text) => answer(`api/${at}/query?sql=${encodeURIComponent(text)}`).then((response) => response.json()),
      tables: () => answer(`api/${at}/tables`).then((response) => response.json()),
    }),
    saved: async (which, place) => {
      const order = [...which].sort((a, b) => a - b);
      const text = await answer(`api/${order.join('.')}/file`).then((response) => response.text());
      return servedPieces(text, written(among(order, place)));
    },
    compared: false,
    picks: comparison && titles.length > 1,
    comparison: async (before, after) => {
      if (!comparison) return null;
      const pair = `${before}/${after}`;
      const known = compared.get(pair) ?? answer(`api/comparison/${pair}`).then((response) => response.json());
      compared.set(pair, known);
      known.catch(() => compared.delete(pair));
      return known;
    },
    workerUrl: () => 'worker.js',
    capture: capture && {
      missing: capture.missing,
      start: (address, seconds) => answer('api/capture', {
        method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ address, seconds }),
      }).then((response) => response.json()),
      cancel: () => answer('api/capture/cancel', {
        method: 'POST', headers: { 'Content-Type': 'application/json' }, body: '{}',
      }).then((response) => response.json()),
      state: () => answer('api/capture').then((response) => response.json()),
    },
  };
}

/**
 * A place by the numbers that its runs have in a file of some.
 * @param {number[]} order
 * @param {import('./types.js').Place} place
 * @returns {import('./types.js').Place}
 */
export function among(order, place) {
  const { beside, ...params } = place.params;
  const run = order.indexOf(place.run);
  if (!beside) return { ...place, run, params };
  const [others, ...step] = beside.split('@');
  const runs = others.split('.').map((other) => order.indexOf(Number(other))).join('.');
  return { ...place, run, params: { ...params, beside: [runs, ...step].join('@') } };
}

/**
 * @param {string} path
 * @param {RequestInit} [request]
 * @returns {Promise<Response>}
 */
async function answer(path, request) {
  const response = await fetch(path, request);
  if (response.ok) return response;
  throw new Error((await response.text()) || `${response.status} ${response.statusText}`);
}
