/** The form that records a running job, where the server behind the page can. */

import { h, put } from '../core/dom.js';
import { visible } from '../core/text.js';

/** @typedef {import('../core/types.js').Capture} Capture */
/** @typedef {import('../core/types.js').CaptureState} CaptureState */

const POLL_MS = 500;

/**
 * The button for the page's top and its dialog. `opened` is told the place of a new profile among all.
 * @param {Capture} capture
 * @param {(at: number) => void} opened
 */
export function captureForm(capture, opened) {
  const said = h('div', { class: 'capture-said', style: { margin: '12px 0' }, role: 'status', 'aria-live': 'polite' });
  const begin = h('button', { class: 'primary' }, 'Record');
  const cancel = h('button', { type: 'button', hidden: true, onclick: () => {
    cancel.disabled = true;
    void capture.cancel().catch((error) => put(said, failed(error)));
  } }, 'Cancel');
  const bar = h('progress', { max: 1, 'aria-label': 'Recorded' });
  const form = formOf(begin, cancel, (address, seconds) => {
    begin.disabled = true;
    void follow(() => capture.start(address, seconds));
  });
  let asked = 0;
  const dialog = dialogOf(capture.missing ? h('p', { class: 'damage' }, capture.missing) : form, said);
  const button = h('button', { type: 'button', onclick: () => {
    dialog.showModal();
    if (!capture.missing && !begin.disabled) void follow(capture.state);  // "Record" works while it is asked.
  } }, 'Capture …');

  /** @param {() => Promise<CaptureState>} ask */
  async function follow(ask) {
    const mine = ++asked;
    cancel.disabled = false;
    try {
      let state = await ask();
      if (mine !== asked) return;  // "Record" was pressed meanwhile: what became of that is told.
      const [before, ran] = [state.captured, state.running !== null];
      while (state.running !== null) {
        begin.disabled = true;
        cancel.hidden = false;
        bar.value = Math.min(1, (state.elapsed ?? 0) / state.seconds);
        put(said, h('p', null, progress(state)), h('p', null, bar));
        await new Promise((done) => { setTimeout(done, POLL_MS); });
        state = await capture.state();
      }
      put(said, state.failure.map((line, at) => h('p', { class: at ? '' : 'damage' }, visible(line))));
      if (ran && state.captured > before) arrived(state.profiles - 1);
    } catch (error) {
      if (mine === asked) put(said, failed(/** @type {Error} */ (error)));
    } finally {
      if (mine === asked) {
        begin.disabled = false;
        cancel.hidden = true;
      }
    }
  }

  /** @param {number} at */
  function arrived(at) {
    if (dialog.open) opened(at);
    else put(said, h('button', { type: 'button', onclick: () => opened(at) }, 'Open the new profile'));
  }

  return { button, dialog };
}

/**
 * What is asked, or why nothing can be, and below it what becomes of it.
 * @param {HTMLElement} asks
 * @param {HTMLElement} said
 */
function dialogOf(asks, said) {
  const dialog = h(
    'dialog',
    { class: 'help capture', 'aria-label': 'Capture' },
    h('h2', null, 'Capture a running job'),
    asks,
    said,
    h('p', null, h('button', { type: 'button', onclick: () => dialog.close() }, 'Close')),
  );
  return dialog;
}

/**
 * What is asked before recording, with its buttons.
 * @param {HTMLElement} begin
 * @param {HTMLElement} cancel
 * @param {(address: string, seconds: number) => void} start
 */
function formOf(begin, cancel, start) {
  const address = h('input', { name: 'address', required: true, placeholder: 'localhost:9012', autocomplete: 'off' });
  const seconds = h('input', {
    name: 'seconds', type: 'number', min: '0.1', max: '600', step: 'any', value: '2', style: { width: '64px' },
  });
  return h(
    'form',
    { onsubmit: (/** @type {Event} */ event) => {
      event.preventDefault();
      start(address.value.trim(), Number(seconds.value));
    } },
    h('p', { class: 'dim' }, 'Where its profiler server listens: that of JAX, TensorFlow or PyTorch/XLA, or of ',
      'stepscope.start_server(PORT) in a PyTorch job.'),
    h('label', null, 'HOST:PORT ', address), ' ', h('label', null, 'seconds ', seconds), ' ', begin, ' ', cancel,
  );
}

/** @param {Error} error */
function failed(error) {
  return h('p', { class: 'damage' }, visible(error.message));
}

/** @param {CaptureState} state */
export function progress({ running, cancelled, seconds, elapsed }) {
  const passed = elapsed ?? 0;
  if (cancelled) return `Cancelling the capture of ${visible(running ?? '')} …`;
  return passed < seconds
    ? `Recording ${visible(running ?? '')}: ${passed.toFixed(1)} of ${seconds} s`
    : `Recorded ${visible(running ?? '')}; waiting for its profile: ${(passed - seconds).toFixed(1)} s`;
}
