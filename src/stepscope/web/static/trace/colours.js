/** Colours of slices: by what they are, by name, by number format or by rank. */

import { categoryColours } from '../core/palette.js';

/** @typedef {'category'|'op'|'precision'|'rank'} Mode */
/** @typedef {'standard'|'blind'} Palette */
/** @typedef {{mode: Mode, palette: Palette, theme: string}} Look */
/** @typedef {[number, number, number]} Rgb */

export const MODES = /** @type {const} */ (['category', 'op', 'precision', 'rank']);

/** Hue, saturation and lightness per kind of slice. */
const KINDS = /** @type {Record<string, [number, number, number]>} */ ({
  step: [215, 22, 62], annotation: [265, 30, 66], python_frame: [32, 42, 66], host_op: [205, 48, 60],
  runtime_call: [45, 68, 56], allocation: [24, 72, 60], overhead: [0, 0, 60], device_wait: [0, 0, 70],
  device_annotation: [265, 22, 68], module: [288, 26, 66], other: [0, 0, 66], step_window: [215, 26, 58],
  scope: [288, 30, 64], instant: [0, 70, 55], annotated: [265, 30, 66], found: [176, 34, 56],
});

/** Kinds whose slices have the colour of an accounting category, each name a shade of it. */
const OF_CATEGORY = /** @type {Record<string, string>} */ ({
  kernel: 'compute', collective: 'collective', copy: 'copy_h2d', memset: 'memset', sync: 'sync', compile: 'compile',
});

/** Kinds that stay apart for every kind of colour vision. */
const BLIND = /** @type {Record<'light'|'dark', Record<string, string>>} */ ({
  light: {
    kernel: '#039d79', collective: '#004179', copy: '#002048', memset: '#037369', runtime_call: '#b47700',
    sync: '#8f40b7', host_op: '#977ccc', compile: '#a33c00', allocation: '#582a00',
  },
  dark: {
    kernel: '#3fc094', collective: '#2387ca', copy: '#92e2fe', memset: '#d9f6c4', runtime_call: '#837a00',
    sync: '#ba5486', host_op: '#b0a4ec', compile: '#f18e31', allocation: '#fec750',
  },
});
const PHASES = /** @type {Record<string, [number, number, number]>} */ ({
  forward: [152, 38, 56], loss: [45, 70, 58], backward: [212, 52, 60], optimizer: [22, 68, 60],
});
const PRECISIONS = /** @type {Record<string, [number, number, number]>} */ ({
  fp32: [14, 70, 58], tf32: [40, 76, 54], fp16: [205, 60, 56], bf16: [152, 46, 48], fp8: [265, 44, 60],
  fp64: [350, 66, 46], int8: [186, 56, 46], fp4: [290, 50, 56],
});

/**
 * @param {string} text
 * @returns {number} the same for equal texts, in any trace
 */
export function hash(text) {
  let value = 2166136261;
  for (let i = 0; i < text.length; i += 1) value = Math.imul(value ^ text.charCodeAt(i), 16777619);
  value ^= value >>> 13;
  return Math.imul(value, 2246822519) >>> 0;
}

/**
 * @param {number} hue degrees
 * @param {number} saturation percent
 * @param {number} lightness percent
 * @returns {[number, number, number]} 0..255
 */
export function rgb(hue, saturation, lightness) {
  const l = lightness / 100;
  const a = (saturation / 100) * Math.min(l, 1 - l);
  const part = (/** @type {number} */ n) => {
    const k = (n + hue / 30) % 12;
    return Math.round(255 * (l - a * Math.max(-1, Math.min(k - 3, 9 - k, 1))));
  };
  return [part(0), part(8), part(4)];
}

/** @param {string} theme */
export function background(theme) {
  return theme === 'dark' ? 0x2a231e : theme === 'contrast' ? 0x000000 : 0xffffff;
}

/**
 * The colour of every name.
 * @param {import('./model.js').Model} model
 * @param {Look} look
 * @returns {import('./raster.js').Colours}
 */
export function coloursOf(model, look) {
  const size = model.texts.length;
  const made = { red: new Float32Array(size), green: new Float32Array(size), blue: new Float32Array(size) };
  for (let i = 0; i < size; i += 1) {
    const [r, g, b] = colourOf(model, i, look);
    made.red[i] = r;
    made.green[i] = g;
    made.blue[i] = b;
  }
  return made;
}

/**
 * @param {import('./model.js').Model} model
 * @param {number} name
 * @param {Look} look
 * @returns {[number, number, number]}
 */
function colourOf(model, name, look) {
  const kind = model.kindNames[model.kinds[name]];
  const text = waits(kind) ? model.categoryList[model.categories[name]]?.name ?? '' : model.texts[name];
  const turn = hash(text);
  const varies = waits(kind) || kind === 'phase' ? 0 : ((turn >>> 8) % 9) - 4;
  const own = waits(kind) ? categoryColours(look.palette, look.theme)[text] : undefined;
  if (own) return legible(channels(own), look.theme);
  const apart = look.palette === 'blind' ? blind(kind, text, look) : null;
  if (apart) return legible(/** @type {Rgb} */ (apart.map((one) => one * (1 + varies / 100))), look.theme);
  const [hue, saturation, lightness] = base(text, model.precisions[name], kind, look, turn);
  const dim = look.theme === 'dark' ? -10 : look.theme === 'contrast' ? 6 : 4;
  return legible(rgb(hue, saturation, Math.max(22, Math.min(86, lightness + varies * 1.6 + dim))), look.theme);
}

/**
 * Idle time has the colour of its cause, whatever it is called, as have work not recorded, what is on the critical path
 * and what a query found that of their categories.
 * @param {string} kind
 */
function waits(kind) {
  return ['idle', 'cause', 'unrecorded', 'critical', 'found'].includes(kind);
}

/**
 * The colour-blind palette's own colour, where it has one.
 * @param {string} kind
 * @param {string} text
 * @param {Look} look
 * @returns {Rgb|null}
 */
function blind(kind, text, look) {
  const shade = look.theme === 'light' ? 'light' : 'dark';
  const hex = look.mode === 'category' ? BLIND[shade][kind] : undefined;
  return hex === undefined ? null : channels(hex);
}

/** @param {string} hex @returns {Rgb} */
function channels(hex) {
  return /** @type {Rgb} */ ([1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16)));
}

/**
 * Hue, saturation and lightness; `rgb` gives the colour back.
 * @param {Rgb} colour
 * @returns {[number, number, number]}
 */
function hsl(colour) {
  const [r, g, b] = colour.map((one) => one / 255);
  const [most, least] = [Math.max(r, g, b), Math.min(r, g, b)];
  const [light, spread] = [(most + least) / 2, most - least];
  if (!spread) return [0, 0, light * 100];
  const turn = most === r ? (g - b) / spread : most === g ? (b - r) / spread + 2 : (r - g) / spread + 4;
  return [(turn * 60 + 360) % 360, spread / (1 - Math.abs(2 * light - 1)) * 100, light * 100];
}

/**
 * A colour moved to black or white until it stands out from the background as WCAG 2.2 asks of graphics, 3 to 1.
 * @param {Rgb} colour
 * @param {string} theme
 * @returns {Rgb}
 */
function legible(colour, theme) {
  const bgr = background(theme);
  const behind = luminance([bgr & 255, bgr >> 8 & 255, bgr >> 16 & 255]);
  const [end, step] = [behind > 0.5 ? 0 : 255, 0.03];
  let shown = colour;
  while (ratio(luminance(shown), behind) < 3.02) {
    shown = /** @type {Rgb} */ (shown.map((one) => one + (end - one) * step));
  }
  return shown;
}

/**
 * The colour of text on a slice.
 * @param {number} red
 * @param {number} green
 * @param {number} blue
 */
export function inkOn(red, green, blue) {
  return luminance([red, green, blue]) > 0.179 ? '#000000' : '#ffffff';
}

/** Relative luminance (WCAG 2.2). @param {Rgb} colour */
function luminance(colour) {
  const [r, g, b] = colour.map((one) => one / 255).map((one) => (
    one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

/** @param {number} a @param {number} b luminances */
function ratio(a, b) {
  return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
}

/**
 * @param {string} text
 * @param {string|null} precision
 * @param {string} kind
 * @param {Look} look
 * @param {number} turn
 * @returns {[number, number, number]}
 */
function base(text, precision, kind, look, turn) {
  if (waits(kind)) return KINDS[kind] ?? KINDS.other;
  if (kind === 'phase') return PHASES[text] ?? [0, 0, 66];
  if (look.mode === 'op') return [turn % 360, 40 + (turn >>> 20) % 20, 58];
  if (look.mode === 'precision') return ofPrecision(precision, kind);
  const category = OF_CATEGORY[kind];
  const own = category ? hsl(channels(categoryColours('standard', look.theme)[category])) : KINDS[kind] ?? KINDS.other;
  return [(own[0] + ((turn >>> 4) % 13) - 6 + 360) % 360, own[1], own[2]];
}

/**
 * What computes or communicates has a precision; all else stands back.
 * @param {string|null} precision
 * @param {string} kind
 * @returns {[number, number, number]}
 */
function ofPrecision(precision, kind) {
  if (kind !== 'kernel' && kind !== 'collective') return [0, 0, 74];
  return PRECISIONS[precision ?? ''] ?? [0, 0, 62];
}

/**
 * The colour of a rank or run, where slices are coloured by it.
 * @param {number} source
 * @returns {[number, number, number]}
 */
export function sourceTint(source) {
  return rgb((source * 137.508 + 200) % 360, 48, 56);
}
