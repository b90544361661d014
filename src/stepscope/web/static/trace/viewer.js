/** A stand-in for the trace viewer. */

/**
 * @param {HTMLElement} container
 * @param {{pack: ArrayBuffer, document: object, workerUrl: string|null, theme: string,
 *   onSelect: (state: object) => void}} options
 * @returns {{show: (view: object) => void, destroy: () => void, state: () => object, setTheme?: (theme: string) => void}}
 */
export function mountTrace(container, options) {
  container.textContent = `${options.pack.byteLength} bytes`;
  return { show: () => {}, destroy: () => container.replaceChildren(), state: () => ({}) };
}
