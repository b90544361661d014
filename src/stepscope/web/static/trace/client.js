/** Asks the engine: in a worker where there can be one, else on the page. */
import { Engine, answer } from './engine.js';

/** @typedef {'load'|'paint'|'frame'|'at'|'sample'|'brief'|'info'|'next'|'search'|'marked'|'area'|'flame'|'gaps'
 *   |'overview'|'op'|'locate'|'events'|'groups'|'counter'|'found'|'prepare'|'finish'|'legend'} Method */
/**
 * What a method is given, and what it answers.
 * @template {Method} M
 * @typedef {Parameters<Engine[M]> extends [] ? null : Parameters<Engine[M]>[0]} Given
 */
/**
 * @template {Method} M
 * @typedef {Awaited<ReturnType<Engine[M]>>} Answer
 */
/** @typedef {<M extends Method>(method: M, given: Given<M>) => Promise<Answer<M>>} Ask */

/** @type {{url: string, worker: Promise<Worker|null>}|null} */
let spare = null;

/**
 * Start a worker that the next engine takes: it comes up while the trace is still read.
 * @param {string|null} workerUrl
 */
export function warm(workerUrl) {
  if (workerUrl !== null && !spare) spare = { url: workerUrl, worker: started(workerUrl) };
}

/** @param {string} workerUrl */
function taken(workerUrl) {
  const worker = spare?.url === workerUrl ? spare.worker : started(workerUrl);
  spare = null;
  return worker;
}

/**
 * @param {string|null} workerUrl
 * @param {(done: number, of: number) => void} progress
 * @returns {Promise<{ask: Ask, stop: () => void, threaded: boolean}>}
 */
export async function startEngine(workerUrl, progress) {
  const worker = workerUrl === null ? null : await taken(workerUrl);
  if (!worker) return onPage(progress);
  /** @type {Map<number, {resolve: (value: never) => void, reject: (error: Error) => void}>} */
  const waiting = new Map();
  let last = 0;
  worker.onmessage = ({ data }) => {
    if (data.progress) {
      progress(data.progress[0], data.progress[1]);
      return;
    }
    const asked = waiting.get(data.id);
    waiting.delete(data.id);
    if (data.error === undefined) asked?.resolve(/** @type {never} */ (data.answer));
    else asked?.reject(new Error(data.error));
  };
  worker.onerror = (event) => {
    waiting.forEach(({ reject }) => reject(new Error(event.message || 'the trace\'s worker stopped')));
    waiting.clear();
  };
  return {
    threaded: true,
    stop: () => worker.terminate(),
    ask: (method, given) => new Promise((resolve, reject) => {
      last += 1;
      waiting.set(last, { resolve, reject });
      const { packs = [], options } = given && 'packs' in given ? given : {};
      worker.postMessage({ id: last, method, given }, [...packs, ...(options?.links ? [options.links.pack] : [])]);
    }),
  };
}

/** @param {(done: number, of: number) => void} progress */
function onPage(progress) {
  const engine = new Engine();
  return {
    threaded: false,
    stop: () => {},
    ask: /** @type {Ask} */ (async (method, given) => answer(engine, method, given, progress)),
  };
}

/**
 * The worker once it has answered; null where workers are not allowed (a policy, a frame without an origin).
 * @param {string} url
 * @returns {Promise<Worker|null>}
 */
function started(url) {
  return new Promise((resolve) => {
    /** @type {Worker} */
    let worker;
    try {
      worker = new Worker(url);
    } catch {
      resolve(null);
      return;
    }
    worker.onerror = (event) => {
      event.preventDefault();
      worker.terminate();
      resolve(null);
    };
    worker.onmessage = () => resolve(worker);
    worker.postMessage({ id: 0, method: 'ping', given: null });
  });
}
