import assert from 'node:assert/strict';
import test from 'node:test';
import { arrange, emptyArrangement, keyOf } from '../../src/stepscope/web/static/trace/layout.js';
import { drawArrows } from '../../src/stepscope/web/static/trace/overlay.js';
import { Stage } from '../../src/stepscope/web/static/trace/stage.js';
import { model } from './made_model.js';

test('arrows join pinned tracks and others; what is scrolled behind the pinned ones is at their edge', () => {
  const made = model([[[[0, 10, 'call']]], [[[20, 10, 'kernel']]], [[[30, 1, 'c']]]]);
  const layout = arrange(made.tracks, [], [''], { ...emptyArrangement(), pinned: [keyOf(made.tracks[1])] });
  const [from, to] = [{ lane: 0, start: 0, dur: 10 }, { lane: 1, start: 20, dur: 10 }];
  const ends = (/** @type {number} */ scroll) => {
    const stage = /** @type {any} */ (Object.assign(Object.create(Stage.prototype), { scale: 1, width: 100,
      frame: { begin: 0, end: 100, width: 100, scroll }, app: { layout, arrows: [{ from, to, kind: 'launch' }] } }));
    /** @type {number[]} */
    const at = [];
    const context = { beginPath() {}, stroke() {}, fill() {}, lineTo() {},
      moveTo: (/** @type {number} */ x, /** @type {number} */ y) => { if (!at.length) at.push(x, y); },
      bezierCurveTo: (/** @type {number[]} */ ...curve) => { at.push(...curve.slice(4)); } };
    drawArrows(stage, /** @type {any} */ (context), '#000');
    return at;
  };
  const own = layout.items.find(({ track, pinned }) => track?.number === 0 && !pinned);
  assert.deepEqual(ends(0), [0, Number(own?.y) + 7.5, 20, 7.5]);
  assert.deepEqual(ends(400), [0, layout.pinnedHeight, 20, 7.5]);
});
