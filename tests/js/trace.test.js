import assert from 'node:assert/strict';
import { gzipSync } from 'node:zlib';
import { test } from 'node:test';
import { deviceParts, overlapping, selfTimes, sumTrack } from '../../src/stepscope/web/static/trace/aggregate.js';
import { Engine } from '../../src/stepscope/web/static/trace/engine.js';
import { fuzzy } from '../../src/stepscope/web/static/trace/boxes.js';
import { coloursOf, hash } from '../../src/stepscope/web/static/trace/colours.js';
import { difference, flame, sandwich } from '../../src/stepscope/web/static/trace/flame.js';
import { arrange, emptyArrangement, frameRows, hit, keyOf, placeOf }
  from '../../src/stepscope/web/static/trace/layout.js';
import { levelFor, levelsOf, lowerBound } from '../../src/stepscope/web/static/trace/lod.js';
import { alignments } from '../../src/stepscope/web/static/trace/model.js';
import { shortName } from '../../src/stepscope/web/static/trace/names.js';
import { across, beside, enclosing, flowsOf, occurrences, sliceAt, sliceAtOf, spread }
  from '../../src/stepscope/web/static/trace/navigate.js';
import { Pack, decodeInts } from '../../src/stepscope/web/static/trace/pack.js';
import { findSlices, parseQuery } from '../../src/stepscope/web/static/trace/query.js';
import { active } from '../../src/stepscope/web/static/trace/overview.js';
import { Raster } from '../../src/stepscope/web/static/trace/raster.js';
import { tickStep } from '../../src/stepscope/web/static/trace/ruler.js';
import { formatTick, parseNs } from '../../src/stepscope/web/static/trace/units.js';
import { View } from '../../src/stepscope/web/static/trace/view.js';
import { model } from './made_model.js';

const NESTED = model([[[[0, 100, 'step'], [200, 50, 'step']], [[10, 30, 'a'], [40, 60, 'b'], [200, 20, 'a']],
  [[45, 10, 'a']]]]);
NESTED.tracks[0].type = 'thread';

test('columns come back as they were', () => {
  const plain = decodeInts(Uint8Array.from([1, 2, 0, 1]), /** @type {any} */ ({ count: 2, width: 2 }));
  assert.deepEqual([...plain], [1, 258]);
  const signed = decodeInts(Uint8Array.from([2, 1, 4]),
    /** @type {any} */ ({ count: 3, width: 1, zigzag: true, delta: true }));
  assert.deepEqual([...signed], [1, 0, 2]);
  const absent = decodeInts(Uint8Array.from([0, 1, 9]), /** @type {any} */ ({ count: 3, width: 1, nullable: true }));
  assert.deepEqual([...absent], [NaN, 0, 8]);
});

test('a pack that is damaged or not one says so', async () => {
  assert.throws(() => new Pack(new TextEncoder().encode('<html>nothing</html>').buffer), /not a pack/);
  const part = gzipSync(Buffer.from('{"a":1}'));
  const section = { type: 'json', offset: 0, bytes: part.length };
  const header = JSON.stringify({ version: 1, slices: 0,
    sections: { h: { ...section, raw: 7 }, bad: { ...section, raw: 5 } } });
  const bytes = Buffer.concat([Buffer.from('SSPACK01'), Buffer.from(Uint32Array.of(header.length).buffer),
    Buffer.from(header), part]);
  const pack = new Pack(Uint8Array.from(bytes).buffer);
  assert.deepEqual(await pack.json('h'), { a: 1 });
  await assert.rejects(pack.raw('bad'), /damaged/);
});

test('levels keep the busy time, and are chosen finer than a pixel', () => {
  /** @type {[number, number, string][]} */
  const lane = Array.from({ length: 5000 }, (_, i) => [i * 300, 100, i % 3 ? 'a' : 'b']);
  const made = model([[lane]]);
  const levels = levelsOf(made, made.lanes[0]);
  assert.ok(levels.length > 2);
  for (const level of levels.slice(1)) {
    assert.equal(level.busy?.reduce((sum, ns) => sum + ns, 0), 500_000);
    assert.equal(level.items?.reduce((sum, n) => sum + n, 0), 5000);
  }
  assert.equal(levelFor(levels, 1).resolution, 0);
  assert.ok(levelFor(levels, 5000).resolution <= 5000);
});

test('a pixel shows the true share that was busy, at every zoom, and no slice is lost', () => {
  /** @type {[number, number, string][]} */
  const lane = Array.from({ length: 40_000 }, (_, i) => [i * 1000, 250, 'a']);
  const made = model([[lane]]);
  const levels = levelsOf(made, made.lanes[0]);
  const colours = { red: Float32Array.of(0), green: Float32Array.of(0), blue: Float32Array.of(0) };
  for (const end of [40_000_000, 4_000_000, 500_000]) {
    const target = { pixels: new Uint32Array(100 * 4).fill(0xffffffff), width: 100, height: 4, begin: 0, end };
    new Raster().draw(target, [{ levels, first: 0, y: 0, height: 4, tint: null }], colours, 0xffffff, 1);
    let dark = 0;
    for (const pixel of target.pixels.subarray(0, 100)) dark += 1 - (pixel & 255) / 255;
    assert.ok(Math.abs(dark / 100 - 0.25) < 0.02, `${dark / 100} at ${end}`);
  }
});

test('the first frame waits for no level, and levels change nothing that is seen', async () => {
  /** @type {[number, number, string][]} */
  const lane = Array.from({ length: 40_000 }, (_, i) => [i * 1000, 250 + (i % 7) * 100, i % 3 ? 'a' : 'b']);
  const engine = new Engine();
  engine.model = model([[lane]]);
  engine.levels = [undefined];
  engine.paint(engine.look);
  const request = { begin: 0, end: 40_000_000, width: 100, height: 4, scale: 1, pinned: [], pinnedHeight: 0,
    rows: [/** @type {any} */ ({ lanes: [0], counter: -1, y: 0, height: 4 })] };
  const first = new Uint8Array(engine.frame(request).pixels);
  assert.equal(engine.levels[0], undefined);
  await engine.prepare();
  assert.ok(Number(/** @type {any} */ (engine.levels[0])?.length) > 2);
  const second = new Uint8Array(engine.frame(request).pixels);
  // A block has the colour of what took most of it: the share that was busy is the same.
  for (let i = 0; i < first.length; i += 1) assert.ok(Math.abs(first[i] - second[i]) < 24, `${i}`);
});

test('what is empty leaves a mark, and edges and names are told', () => {
  const made = model([[[[0, 0, 'mark'], [50, 50, 'wide']]]]);
  const colours = { red: Float32Array.of(0, 0), green: Float32Array.of(0, 0), blue: Float32Array.of(0, 0) };
  const target = { pixels: new Uint32Array(100).fill(0xffffffff), width: 100, height: 1, begin: 0, end: 100 };
  const labels = new Raster().draw(target, [{ levels: levelsOf(made, made.lanes[0]), first: 0, y: 0, height: 1,
    tint: null }], colours, 0xffffff, 1);
  assert.ok((target.pixels[0] & 255) < 255);
  assert.deepEqual([...labels], [50, 50, 0, 1, 1, 1]);
  assert.ok((target.pixels[50] & 255) > (target.pixels[60] & 255));
});

test('the search language', () => {
  const made = model([[[[0, 5, 'aten::mm'], [10, 500, 'memcpy HtoD'], [1000, 50, 'gemm<"x">']]],
    [[[0, 100, 'step 4']]]],
    { 'step 4': [4, 255], 'gemm<"x">': [1, 0], 'memcpy HtoD': [1, 1] });
  made.tracks[1].type = 'steps';
  const find = (/** @type {string} */ text) => [...findSlices(made, parseQuery(text))];
  assert.deepEqual(find('kind:kernel -name:memcpy'), [2]);
  assert.deepEqual(find('cat:kernel dur>100'), [1]);
  assert.deepEqual(find('cat:compute'), [2]);
  assert.deepEqual(find('aten::mm'), [0]);
  assert.deepEqual(find('/^MEM/i|'), []);
  assert.deepEqual(find('/^MEM/i'), [1]);
  assert.deepEqual(find('mm|memcpy'), [0, 1, 2]);
  assert.deepEqual(find('rank:3 step:4 dur>=5ns kind:kernel|host_op'), [0, 1]);
  assert.deepEqual(find('name:"gemm<\\"x\\">"'), [2]);
  assert.deepEqual(find('track:/stream 7/'), []);
  assert.match(String(parseQuery('dur>fast').error), /is no time/);
  assert.match(String(parseQuery('/[/').error), /regular expression/);
});

test('self times share every instant between what nests and what crosses', () => {
  const track = NESTED.tracks[0];
  const slices = overlapping(NESTED, track, 0, 300);
  const own = selfTimes(NESTED, slices, 0, 300);
  assert.deepEqual([...slices].map((i, k) => [NESTED.texts[NESTED.name[i]], own[k]]),
    [['step', 10], ['a', 30], ['b', 50], ['a', 10], ['step', 30], ['a', 20]]);
  const crossing = model([[[[0, 10, 'a']], [[5, 10, 'b']]]]);
  assert.deepEqual([...selfTimes(crossing, overlapping(crossing, crossing.tracks[0], 0, 20), 0, 20)], [5, 10]);
  const sum = sumTrack(NESTED, 0, 20, 60);
  assert.deepEqual(sum.names.map(({ name, count, total, self }) => [name, count, total, self]),
    [['a', 2, 30, 30], ['b', 1, 20, 10], ['step', 1, 40, 0]]);
});

test('a device is busy with the first category that is at work', () => {
  const made = model([[[[0, 100, 'k']]], [[[50, 100, 'copy']]], [[[150, 50, 'input']]]],
    { k: [1, 0], copy: [1, 1], input: [2, 2] });
  made.tracks[2].type = 'idle';
  assert.deepEqual(deviceParts(made, 0, 0, 0, 200).map(({ category, ns }) => [category, ns]),
    [['compute', 100], ['copy', 50], ['input', 50]]);
});

test('flame graphs', () => {
  const range = { begin: 0, end: 300, tracks: [0] };
  const merged = flame(NESTED, range, 'merged');
  assert.equal(merged.total, 150);
  assert.deepEqual(merged.children[0].children.map(({ name, total, self }) => [name, total, self]),
    [['b', 60, 50], ['a', 50, 50]]);
  assert.deepEqual(flame(NESTED, range, 'time').children[0].children.map(({ name }) => name), ['a', 'b', 'a']);
  const { callers, callees } = sandwich(NESTED, range, 'b');
  assert.deepEqual([callers.total, callers.children[0].name, callees.children[0].total], [60, 'step', 10]);
  const changed = difference(NESTED, { ...range, end: 100 }, { ...range, begin: 200 });
  assert.deepEqual([changed.total, changed.before], [100, 50]);
});

test('neighbours: beside, inside, around, of the same name, along flows', () => {
  assert.deepEqual([beside(NESTED, 0, 1), beside(NESTED, 1, 1), across(NESTED, 0, 1)], [1, -1, 2]);
  assert.deepEqual(enclosing(NESTED, 5), [3, 0]);
  assert.deepEqual([...occurrences(NESTED, NESTED.texts.indexOf('a'), NESTED.sources[0])], [2, 5, 4]);
  assert.deepEqual([sliceAt(NESTED, 0, 150, 10), sliceAt(NESTED, 0, 104, 10), sliceAt(NESTED, 0, 220, 0)], [-1, 0, 1]);
  const flowing = model([[[[0, 1, 'call'], [5, 1, 'call']]], [[[9, 1, 'k']]]], {}, [[0, 2, 1], [1, 2, 0]]);
  assert.deepEqual(flowsOf(flowing, 2).into, [{ slice: 0, kind: 'launch' }, { slice: 1, kind: 'arrow' }]);
  assert.deepEqual(flowsOf(flowing, 1).out, [{ slice: 2, kind: 'arrow' }]);
  flowing.peers = new Map([[1, [0, 1, 2]]]);
  assert.deepEqual(flowsOf(flowing, 1), { into: [{ slice: 0, kind: 'collective' }],
    out: [{ slice: 2, kind: 'arrow' }, { slice: 2, kind: 'collective' }] });
  const told = spread(NESTED, occurrences(NESTED, NESTED.texts.indexOf('a'), NESTED.sources[0]));
  assert.deepEqual([told.count, told.total, told.min, told.p50, told.max], [3, 60, 10, 20, 30]);
});

test('the view zooms about a point, stays near the trace and remembers where it was', () => {
  let changes = 0;
  const view = new View(0, 1000, () => { changes += 1; });
  view.set(100, 300, { now: 0 });
  view.set(120, 320, { now: 100 });
  view.set(400, 500, { now: 5000 });
  view.zoom(0.5, 0.25);
  assert.deepEqual([view.begin, view.end], [412.5, 462.5]);
  view.back();
  view.back();
  view.back();
  assert.deepEqual([view.begin, view.end], [0, 1000]);
  view.forward();
  assert.deepEqual([view.begin, view.end], [120, 320]);
  view.pan(100);
  assert.ok(view.begin < 1000 && view.end - view.begin === 200);
  assert.ok(changes > 5);
});

test('the history has what its owner keeps beside the view, and several changes as one', () => {
  let tracks = 'first';
  const view = new View(0, 1000, () => {}, { get: () => tracks, set: (now) => { tracks = String(now); } });
  const change = (/** @type {string} */ next) => {
    view.remember('tracks');
    tracks = next;
  };
  change('second');
  view.together(() => {
    change('third');
    view.set(100, 200);
  });
  view.together(() => {});
  view.back();
  assert.deepEqual([tracks, view.begin, view.end], ['second', 0, 1000]);
  view.back();
  assert.equal(tracks, 'first');
  view.forward();
  view.forward();
  assert.deepEqual([tracks, view.begin, view.end], ['third', 100, 200]);
});

test('tracks are pinned, hidden, collapsed, moved and filtered', () => {
  const made = model([[[[0, 1, 'a']], [[0, 1, 'b']]], [[[0, 1, 'c']]], [[[0, 1, 'd']]]]);
  const of = (/** @type {any} */ change) => arrange(made.tracks, [], ['rank 3'], { ...emptyArrangement(), ...change });
  const labels = (/** @type {any} */ layout) => layout.items.map((/** @type {any} */ item) => item.label);
  const keys = made.tracks.map(keyOf);
  assert.deepEqual(labels(of({})), ['rank 3 · device 0', 'stream 0', 'stream 1', 'stream 2']);
  assert.deepEqual(labels(of({ pinned: [keys[2]] })), ['stream 2', 'rank 3 · device 0', 'stream 0', 'stream 1']);
  assert.deepEqual(labels(of({ hidden: [keys[0]], order: [keys[2], keys[1]] })),
    ['rank 3 · device 0', 'stream 2', 'stream 1']);
  assert.deepEqual(labels(of({ filter: 'stream [12]' })), ['rank 3 · device 0', 'stream 1', 'stream 2']);
  assert.deepEqual(labels(of({ closed: ['0/device 0'] })), ['rank 3 · device 0']);
  const collapsed = of({ collapsed: [keys[0]] });
  assert.equal(frameRows(collapsed, emptyArrangement(), 0, 500, 1).rows[0].lanes.length, 2);
  const open = of({ pinned: [keys[1]] });
  const place = placeOf(open, 1);
  assert.equal(hit(open, 0, Number(place?.y) + 1)?.lanes[0], 1);
  assert.equal(hit(open, 30, 3)?.lanes[0], 2);
});

test('streams of one kind are folded into one row, which shows all their lanes and opens', () => {
  const made = model([[[[0, 5, 'a']], [[1, 1, 'b']]], [[[2, 1, 'c']]], [[[3, 1, 'd']]], [[[0, 9, 'e']]],
    [[[4, 1, 'f']]]]);
  made.tracks.forEach((/** @type {any} */ track, /** @type {number} */ at) => {
    track.holds = at === 3 ? 'collective' : 'compute';
  });
  const of = (/** @type {any} */ change) => arrange(made.tracks, [], ['rank 3'], { ...emptyArrangement(), ...change });
  const labels = (/** @type {any} */ layout) => layout.items.map((/** @type {any} */ item) => item.label);
  const folded = of({});
  assert.deepEqual(labels(folded), ['rank 3 · device 0', '4 streams', 'stream 3']);
  assert.deepEqual(frameRows(folded, emptyArrangement(), 0, 500, 1).rows.map((row) => row.lanes),
    [[0, 1, 2, 3, 5], [4]]);
  const place = placeOf(folded, 5);
  assert.equal(place?.item.type, 'fold');
  assert.deepEqual(hit(folded, 0, Number(place?.y) + 1)?.lanes, [0, 1, 2, 3, 5]);
  assert.equal(sliceAtOf(made, [0, 1, 2, 3, 5], 1.5, 1), 1);
  assert.equal(placeOf(folded, 4)?.item.type, 'track');
  const open = of({ unfolded: [folded.items[1].key] });
  assert.deepEqual(labels(open), ['rank 3 · device 0', '4 streams', 'stream 0', 'stream 1', 'stream 2', 'stream 4',
    'stream 3']);
  const hidden = of({ hidden: [keyOf(made.tracks[0])] });
  assert.deepEqual(labels(hidden), ['rank 3 · device 0', 'stream 1', 'stream 2', 'stream 3', 'stream 4']);
});

test('colours are the same in every trace, and runs are aligned by clock or step', () => {
  const [a, b] = [model([[[[0, 1, 'x'], [2, 1, 'y']]]]), model([[[[0, 1, 'y']]]])];
  const look = { mode: /** @type {const} */ ('op'), palette: /** @type {const} */ ('standard'), theme: 'light' };
  assert.equal(coloursOf(a, look).red[1], coloursOf(b, look).red[0]);
  assert.notEqual(hash('a'), hash('b'));
  const header = (/** @type {string|null} */ epoch, /** @type {number} */ start) => (
    { epoch_ns: epoch, steps: [{ name: '', start_ns: start }], extent_ns: [0, 1] });
  assert.deepEqual(alignments([header('1700000000000000100', 5), header('1700000000000000350', 2)], 'clock'), [0, 250]);
  assert.deepEqual(alignments([header(null, 5), header('1', 2)], 'steps'), [0, 3]);
});

test('times, ticks and names', () => {
  assert.deepEqual([parseNs('100us'), parseNs('1.5 ms'), parseNs('7'), parseNs('x')], [100_000, 1_500_000, 7, NaN]);
  assert.equal(formatTick(1_250_000, 50_000), '1.25 ms');
  assert.equal(tickStep(1000, 10), 100);
  assert.equal(lowerBound([1, 3, 3, 5], 3), 1);
  assert.equal(shortName('void at::native::vectorized_elementwise_kernel<4, foo>(int)'),
    'vectorized_elementwise_kernel<4, foo>(int)');
  assert.equal(shortName('aten::scaled_dot_product_attention_backward'), 'aten::scaled_dot_product_attention_backward');
  assert.ok(fuzzy('st7', 'stream 7') > 0 && fuzzy('zz', 'stream') < 0);
});

test('what takes less than a pixel has its full colour at the foot of its lane, and its true share above', () => {
  /** @type {[number, number, string][]} */
  const lane = [[50_500, 100, 'short'], [80_000, 20_000, 'long']];
  const made = model([[lane]]);
  const colours = { red: Float32Array.of(200, 0), green: Float32Array.of(0, 0), blue: Float32Array.of(0, 0) };
  const target = { pixels: new Uint32Array(100 * 16).fill(0xffffffff), width: 100, height: 16, begin: 0, end: 100_000 };
  new Raster().draw(target, [{ levels: levelsOf(made, made.lanes[0]), first: 0, y: 0, height: 15, tint: null }],
    colours, 0xffffff, 1);
  const at = (/** @type {number} */ x, /** @type {number} */ y) => target.pixels[y * 100 + x] >>> 0;
  assert.equal(at(50, 14), 0xff0000c8);
  assert.equal(at(50, 11), 0xff0000c8);
  assert.equal(at(50, 0) & 255, Math.floor(200 * 0.1 + 255 * 0.9));
  assert.equal(at(50, 15), 0xffffffff, 'below the lane');
  assert.equal(at(49, 14), 0xffffffff, 'where nothing ran');
  assert.equal(at(90, 14), at(90, 0), 'what fills its pixels');
});

test('nearly all work is found, however small a part of the trace it is', () => {
  /** @type {[number, number, string][]} */
  const late = Array.from({ length: 1000 }, (_, i) => [9_999_000_000 + i * 1000, 500, 'kernel']);
  const found = active(model([[[[0, 10, 'stray'], ...late]]]));
  assert.ok(found && found.begin > 9_998_900_000 && found.end - found.begin < 1_200_000, JSON.stringify(found));
  // One long slice is most of the time: what is many times as often but short does not hide it.
  const long = active(model([[[[0, 5_000_000_000, 'long'], ...late]]]));
  assert.ok(long && long.begin === 0, JSON.stringify(long));
  assert.equal(active(model([[[]]])), null);
});
