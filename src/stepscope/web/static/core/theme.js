/** Light, dark or high contrast, as the system asks unless the reader chose; and the palette of categories. */

import { categoryColours } from './palette.js';

export const THEMES = /** @type {const} */ (['auto', 'light', 'dark', 'contrast']);
export const PALETTES = /** @type {const} */ (['standard', 'blind']);
/** @typedef {typeof THEMES[number]} Theme */
/** @typedef {typeof PALETTES[number]} Palette */

const THEME = 'stepscope-theme';
const PALETTE = 'stepscope-palette';

/** @returns {Theme} */
export function chosenTheme() {
  return kept(THEME, THEMES);
}

/** @returns {Palette} */
export function chosenPalette() {
  return kept(PALETTE, PALETTES);
}

/** @returns {'light'|'dark'|'contrast'} */
export function shownTheme() {
  const chosen = chosenTheme();
  if (chosen !== 'auto') return chosen;
  if (matchMedia('(prefers-contrast: more)').matches) return 'contrast';
  return matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light';
}

/** The palette that the page has, also where the choice cannot be kept. @returns {Palette} */
export function shownPalette() {
  return PALETTES.find((one) => one === document.documentElement.dataset.palette) ?? PALETTES[0];
}

/** @param {Theme} theme */
export function chooseTheme(theme) {
  keep(THEME, theme);
  showTheme(theme);
}

/** Show what was chosen, or what the system now asks for. */
export function showTheme(theme = chosenTheme()) {
  document.documentElement.dataset.theme = theme === 'auto' ? shownTheme() : theme;
  paint();
}

/** The categories' colours, as the style sheet's variables. */
function paint() {
  const { style, dataset } = document.documentElement;
  const colours = categoryColours(dataset.palette ?? '', dataset.theme ?? 'light');
  for (const [category, colour] of Object.entries(colours)) style.setProperty(`--cat-${category}`, colour);
}

/** @param {Palette} palette */
export function choosePalette(palette) {
  keep(PALETTE, palette);
  document.documentElement.dataset.palette = palette;
  paint();
}

/**
 * What the reader chose before; the first of what there is, unless they did.
 * @template {string} T
 * @param {string} key
 * @param {readonly T[]} offered
 * @returns {T}
 */
function kept(key, offered) {
  try {
    const saved = localStorage.getItem(key);
    return offered.find((one) => one === saved) ?? offered[0];
  } catch {
    return offered[0]; // Frames of a notebook may not keep anything.
  }
}

/** @param {string} key @param {string} value */
function keep(key, value) {
  try {
    localStorage.setItem(key, value);
  } catch {
    // It then lasts as long as the page.
  }
}
