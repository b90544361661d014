/** The worker: answers what the page asks of the engine. */
import { Engine, answer } from './engine.js';

const engine = new Engine();

self.onmessage = async (/** @type {MessageEvent} */ event) => {
  const { id, method, given } = event.data;
  const post = /** @type {(message: unknown, transfer?: Transferable[]) => void} */ (
    /** @type {unknown} */ (self.postMessage.bind(self)));
  try {
    const progress = (/** @type {number} */ done, /** @type {number} */ of) => post({ progress: [done, of] });
    const told = await answer(engine, method, given, progress);
    post({ id, answer: told }, told?.pixels ? [told.pixels, told.labels.buffer] : []);
  } catch (error) {
    post({ id, error: error instanceof Error ? error.message : String(error) });
  }
};
