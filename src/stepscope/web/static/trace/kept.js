/** What the browser keeps between visits. Frames without an origin keep nothing. */

/**
 * @param {string} key
 * @returns {unknown} null where nothing is kept
 */
export function kept(key) {
  try {
    return JSON.parse(localStorage.getItem(key) ?? 'null');
  } catch {
    return null;
  }
}

/**
 * @param {string} key
 * @param {unknown} value
 * @returns {boolean} whether it could be kept
 */
export function keep(key, value) {
  try {
    localStorage.setItem(key, JSON.stringify(value));
    return true;
  } catch {
    return false;
  }
}
