/** Light, dark or high contrast: as the system asks, unless the reader chose. */

export const THEMES = /** @type {const} */ (['auto', 'light', 'dark', 'contrast']);
/** @typedef {typeof THEMES[number]} Theme */

const KEY = 'stepscope-theme';

/** @returns {Theme} */
export function chosenTheme() {
  try {
    const kept = localStorage.getItem(KEY);
    return THEMES.find((theme) => theme === kept) ?? 'auto';
  } catch {
    return 'auto'; // Frames of a notebook may not keep anything.
  }
}

/** @returns {'light'|'dark'|'contrast'} */
export function shownTheme() {
  const chosen = chosenTheme();
  if (chosen !== 'auto') return chosen;
  if (matchMedia('(prefers-contrast: more)').matches) return 'contrast';
  return matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light';
}

/** @param {Theme} theme */
export function chooseTheme(theme) {
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    // It then lasts as long as the page.
  }
  document.documentElement.dataset.theme = theme === 'auto' ? shownTheme() : theme;
}
