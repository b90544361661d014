/** The colours of pages and trace in every theme and palette: their contrast, and which eyes tell them apart. */

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';

import { categoryColours } from '../../src/stepscope/web/static/core/palette.js';
import { background, coloursOf, inkOn, MODES } from '../../src/stepscope/web/static/trace/colours.js';
import { close, contrast, light, linear } from './vision.js';

const STATIC = new URL('../../src/stepscope/web/static/', import.meta.url);
const SHEET = readFileSync(new URL('colours.css', STATIC), 'utf8');
const THEMES = ['light', 'dark', 'contrast'];
const PALETTES = /** @type {const} */ (['standard', 'blind']);
/** WCAG 2.2, 1.4.3 and 1.4.11. */
const TEXT = 4.5;
const GRAPHICS = 3;
/** Of categories, as a distance in Oklab; two colours beside each other are told apart from about 0.02. */
const APART = 0.055;
const BUSY = ['compute', 'memset', 'collective', 'collective_transfer', 'collective_wait', 'copy_h2d', 'copy_d2h',
  'copy_d2d', 'copy_p2p', 'unrecorded'];

/**
 * The style sheet's variables where the root has this theme and palette, with the cascade of its own selectors.
 * @param {string} theme
 * @param {string} palette
 */
function variables(theme, palette) {
  const found = [];
  for (const [, selector, body] of SHEET.replace(/\/\*.*?\*\//gs, '').matchAll(/(:root[^{]*)\{([^}]*)\}/g)) {
    const asked = [...selector.matchAll(/data-(theme|palette)="(\w+)"/g)];
    const allows = (/** @type {string} */ key, /** @type {string} */ value) => {
      const wanted = asked.filter((one) => one[1] === key).map((one) => one[2]);
      return !wanted.length || wanted.includes(value);
    };
    if (!allows('theme', theme) || !allows('palette', palette)) continue;
    found.push({ weight: new Set(asked.map((one) => one[1])).size, body });
  }
  found.sort((a, b) => a.weight - b.weight); // A stable sort: later rules win among equals.
  /** @type {Record<string, string>} */
  const all = {};
  for (const { body } of found) {
    for (const [, name, value] of body.matchAll(/--([\w-]+):\s*([^;]+);/g)) all[name] = value.trim();
  }
  for (const [name, colour] of Object.entries(categoryColours(palette, theme))) all[`cat-${name}`] = colour;
  return all;
}

/** @param {Record<string, string>} all @param {(name: string) => boolean} which */
function named(all, which) {
  return Object.fromEntries(Object.entries(all).filter(([name]) => which(name))
    .map(([name, hex]) => [name, linear(hex)]));
}

for (const theme of THEMES) {
  test(`text stands out: ${theme}`, () => {
    const all = variables(theme, 'standard');
    for (const text of ['text', 'dim', 'good', 'warn', 'bad', 'accent']) {
      for (const behind of ['bg', 'panel', 'raised']) {
        const found = contrast(linear(all[text]), linear(all[behind]));
        assert.ok(found >= TEXT, `${text} on ${behind}: ${found.toFixed(2)}`);
      }
    }
    assert.ok(contrast(linear(all['accent-text']), linear(all.accent)) >= TEXT);
  });

  for (const palette of PALETTES) {
    test(`marks stand out: ${theme}, ${palette}`, () => {
      const all = variables(theme, palette);
      const marks = named(all, (name) => /^(cat|mem)-|^(edge|focus|bad|dim|accent)$/.test(name));
      assert.ok(Object.keys(marks).length >= 29 + 6 + 5);
      for (const [name, rgb] of Object.entries(marks)) {
        for (const behind of ['panel', 'raised']) {
          const found = contrast(rgb, linear(all[behind]));
          assert.ok(found >= GRAPHICS, `${name} on ${behind}: ${found.toFixed(2)}`);
        }
      }
    });
  }

  test(`the colour-blind palette stays apart for every kind of vision: ${theme}`, () => {
    const all = variables(theme, 'blind');
    const isBusy = (/** @type {string} */ name) => BUSY.includes(name.slice(4));
    // Never beside each other: one is of profiles without devices.
    assert.equal(all['cat-host_compute'], all['cat-compute']);
    const waits = (/** @type {string} */ name) => (
      name.startsWith('cat-') && !isBusy(name) && name !== 'cat-host_compute');
    assert.deepEqual(close(named(all, (name) => isBusy(name)), APART), []);
    assert.deepEqual(close(named(all, waits), APART), []);
    assert.deepEqual(close(named(all, (name) => name.startsWith('mem-')), APART), []);
  });
}

test('of the standard palette no two categories look alike to usual vision', () => {
  for (const theme of THEMES) {
    const all = named(variables(theme, 'standard'), (name) => name.startsWith('cat-') && name !== 'cat-host_compute');
    const found = close(all, 0.02).filter((pair) => pair.endsWith('with trichromacy'));
    assert.deepEqual(found, []);
  }
});

const KINDS = ['kernel', 'collective', 'copy', 'memset', 'host_op', 'runtime_call', 'python_frame', 'sync',
  'allocation', 'compile', 'annotation', 'step', 'module', 'scope', 'device_wait', 'device_annotation', 'overhead',
  'other', 'idle', 'cause', 'phase', 'annotated', 'unrecorded'];

/**
 * A trace's names.
 * @param {string[]} kindNames
 * @param {string[]} texts
 * @param {number[]} kinds
 */
function model(kindNames, texts, kinds) {
  const part = { texts, kindNames, kinds: Uint8Array.from(kinds), precisions: texts.map(() => 'bf16'),
    categories: Uint8Array.from(texts.keys()), categoryList: texts.map((name) => ({ name })) };
  return /** @type {import('../../src/stepscope/web/static/trace/model.js').Model} */ (/** @type {unknown} */ (part));
}

const TEXTS = KINDS.flatMap((kind) => Array.from({ length: 9 }, (_, at) => `${kind} ${at}`));
const ALL = model(KINDS, TEXTS, TEXTS.map((_, at) => Math.floor(at / 9)));

for (const theme of THEMES) {
  test(`slices of the trace stand out from its background, and their text from them: ${theme}`, () => {
    const behind = light([16, 8, 0].map((shift) => background(theme) >> shift & 255).reverse());
    for (const palette of PALETTES) {
      for (const mode of MODES) {
        const { red, green, blue } = coloursOf(ALL, { mode, palette, theme });
        red.forEach((_, at) => {
          const rgb = /** @type {[number, number, number]} */ ([red[at], green[at], blue[at]]);
          const name = `${mode} ${palette} ${TEXTS[at]}`;
          const [found, text] = [contrast(light(rgb), behind), contrast(light(rgb), linear(inkOn(...rgb)))];
          assert.ok(found >= GRAPHICS, `${name}: ${found.toFixed(2)}`);
          assert.ok(text >= TEXT, `text on ${name}: ${text.toFixed(2)}`);
        });
      }
    }
  });

  test(`kinds of slices stay apart in the trace's colour-blind palette: ${theme}`, () => {
    // A name each: names of a kind differ a little.
    const kinds = ['kernel', 'collective', 'copy', 'memset', 'runtime_call', 'sync', 'host_op', 'compile',
      'allocation'];
    const made = coloursOf(model(kinds, kinds.map(() => ''), kinds.map((_, at) => at)),
      { mode: 'category', palette: 'blind', theme });
    const colours = kinds.map((kind, at) => [kind, light([made.red[at], made.green[at], made.blue[at]])]);
    assert.deepEqual(close(Object.fromEntries(colours), 0.04), []);
  });
}

for (const palette of PALETTES) {
  test(`the trace has the pages' colours for causes of idle time: ${palette}`, () => {
    const waits = Object.keys(variables('light', 'blind')).filter((name) => name.startsWith('cat-'))
      .map((name) => name.slice(4)).filter((name) => name === 'unrecorded' || (
        !BUSY.includes(name) && name !== 'host_compute'));
    assert.ok(waits.includes('unrecorded'));
    const made = (/** @type {string} */ theme) => {
      const { red, green, blue } = coloursOf(model(['idle'], waits, waits.map(() => 0)), {
        mode: 'category', palette, theme,
      });
      return waits.map((_, at) => `#${[red, green, blue]
        .map((one) => one[at].toString(16).padStart(2, '0')).join('')}`);
    };
    for (const theme of THEMES) {
      const all = variables(theme, palette);
      assert.deepEqual(made(theme), waits.map((name) => all[`cat-${name}`]));
    }
  });
}
