/** Colours as numbers: contrast, and how far apart they are for each kind of colour vision. */

/** @typedef {number[]} Rgb three channels of linear light, 0 to 1 */

/** Of linear light: Machado, Oliveira, Fernandes, "A Physiologically-based Model for Simulation of Color Vision
 * Deficiency", IEEE TVCG 15 (2009), table 1, severity 1. */
const VISIONS = {
  trichromacy: [1, 0, 0, 0, 1, 0, 0, 0, 1],
  protanopia: [0.152286, 1.052583, -0.204868, 0.114503, 0.786281, 0.099216, -0.003882, -0.048116, 1.051998],
  deuteranopia: [0.367322, 0.860646, -0.227968, 0.280085, 0.672501, 0.047413, -0.011820, 0.042940, 0.968881],
  tritanopia: [1.255528, -0.076749, -0.178779, -0.078411, 0.930809, 0.147602, 0.004733, 0.691367, 0.303900],
};

/** @param {string} hex @returns {Rgb} */
export function linear(hex) {
  const digits = hex.length === 4 ? [...hex.slice(1)].map((one) => one + one) : hex.slice(1).match(/../g) ?? [];
  return light(digits.map((one) => parseInt(one, 16)));
}

/** Linear light of 0..255 per channel. @param {number[]} channels @returns {Rgb} */
export function light(channels) {
  return channels.map((one) => one / 255)
    .map((one) => (one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4));
}

/** The contrast ratio of WCAG 2.2. @param {Rgb} a @param {Rgb} b */
export function contrast(a, b) {
  const [high, low] = [a, b].map(([r, g, b_]) => 0.2126 * r + 0.7152 * g + 0.0722 * b_).sort((x, y) => y - x);
  return (high + 0.05) / (low + 0.05);
}

/** Oklab (Ottosson 2020) of a colour as a kind of vision sees it. @param {Rgb} rgb @param {number[]} matrix */
function seen(rgb, matrix) {
  const [r, g, b] = [0, 3, 6].map((row) => Math.min(1, Math.max(0,
    matrix[row] * rgb[0] + matrix[row + 1] * rgb[1] + matrix[row + 2] * rgb[2])));
  const l = Math.cbrt(0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b);
  const m = Math.cbrt(0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b);
  const s = Math.cbrt(0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b);
  return [
    0.2104542553 * l + 0.7936177850 * m - 0.0040720468 * s,
    1.9779984951 * l - 2.4285922050 * m + 0.4505937099 * s,
    0.0259040371 * l + 0.7827717662 * m - 0.8086757660 * s,
  ];
}

/**
 * Pairs of named colours that some vision hardly tells apart.
 * @param {Record<string, Rgb>} colours
 * @param {number} least
 */
export function close(colours, least) {
  /** @type {string[]} */
  const found = [];
  for (const [vision, matrix] of Object.entries(VISIONS)) {
    const all = Object.entries(colours).map(([name, rgb]) => ({ name, lab: seen(rgb, matrix) }));
    all.forEach((one, at) => all.slice(at + 1).forEach((other) => {
      const apart = Math.hypot(...one.lab.map((value, axis) => value - other.lab[axis]));
      if (apart < least) found.push(`${one.name}, ${other.name}: ${apart.toFixed(3)} with ${vision}`);
    }));
  }
  return found;
}
