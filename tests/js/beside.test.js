import assert from 'node:assert/strict';
import test from 'node:test';
import { chosen, held, offered, ranksTogether, shift, together } from '../../src/stepscope/web/static/pages/beside.js';
import { viewTime } from '../../src/stepscope/web/static/trace/clock.js';

const clock = (/** @type {number} */ rank, /** @type {number|null} */ offset, drift = 0) => (
  { rank, offset_ns: offset, drift: offset === null ? null : drift, at_ns: offset === null ? null : 1e9,
    uncertainty_ns: offset === null ? null : 20_000 });

const TITLES = ['job', 'rank 2: c', 'rank 0: a', 'rank 1: b', 'rank 4: e', 'rank 3: d', 'other'];

/** @param {any[]} clocks @param {(string|null)[]} [epochs] @returns {any} */
function source(clocks, epochs = []) {
  const traces = { 0: 2, 1: 3, 2: 1, 3: 5, 4: 4 };
  return { titles: TITLES, run: async (/** @type {number} */ at) => ({
    title: TITLES[at], traces: at === 0 ? traces : {},
    report: { profile: { epoch_ns: epochs[at] ?? null }, findings: [],
      analyses: at === 0 ? { ranks: { clocks, stragglers: [{ rank: 2 }], per_rank: WAITED } } : {} } }) };
}

const WAITED = [[0, 3], [1, 9], [2, 0], [3, null], [4, 5], [4, 8]].map(([rank, wait]) => (
  { rank, made_wait_ns_per_step: wait }));

test('a rank may stand beside others of its job, those that stand out first; another run beside any', async () => {
  const offer = await offered(source([]), 3);
  assert.deepEqual(offer.choices.map(({ text }) => text),
    ['rank 0', 'rank 2', 'rank 3', 'rank 4', 'ranks 0, 2, 4', 'ranks 0, 2, 3, 4']);
  assert.deepEqual(chosen(offer, '2.1.4'), [2, 1, 4]);
  assert.deepEqual(chosen(offer, '1.2.4.6'), []);
  const { job, choices } = await offered(source([]), 6);
  assert.equal(job, null);
  assert.deepEqual(choices.map(({ runs }) => runs), [[0], [1], [2], [3], [4], [5]]);
});

test('of many ranks those that findings name and others wait for stand together, wherever their runs are', () => {
  const ranks = Array.from({ length: 100 }, (_, rank) => rank);
  const run = /** @type {any} */ ({
    traces: Object.fromEntries(ranks.map((rank) => [rank, rank + 1])),
    report: { findings: [{ rank: 97 }, { rank: null }], analyses: { ranks: { stragglers: [{ rank: 51 }],
      per_rank: ranks.map((rank) => ({ rank, made_wait_ns_per_step: [7, 33].includes(rank) ? 100 + rank : 0 })) } } },
  });
  const sets = ranksTogether(run);
  assert.deepEqual(sets.map((one) => one.ranks.length), [4, 8, 16]);
  assert.deepEqual(sets[0].ranks, [7, 33, 51, 97]);
  assert.deepEqual([sets[0].rank, sets[0].beside], [7, '34.52.98']);
  assert.deepEqual(sets[1].ranks, [0, 1, 2, 3, 7, 33, 51, 97]);
});

test('a view holds as many traces as it has room for slices, and names the others', async () => {
  const pack = (/** @type {number} */ slices) => {
    const header = new TextEncoder().encode(JSON.stringify({ version: 1, slices, sections: {} }));
    return Uint8Array.from([...new TextEncoder().encode('SSPACK01'), header.length, 0, 0, 0, ...header]).buffer;
  };
  const given = { ...source([]), pack: async (/** @type {number} */ at) => pack(at * 10) };
  /** @type {string[]} */
  const told = [];
  const { shown, left } = await held(given, [2, 3, 1, 5, 4], (text) => told.push(text), 60);
  assert.deepEqual(shown.map(({ at }) => at), [2, 3, 1]);
  assert.deepEqual(left, ['rank 3', 'rank 4']);
  assert.equal(told[0], 'rank 1 (2 of 5)');
  assert.deepEqual((await held(given, [2, 3], () => {}, 1)).shown.length, 1);
});

test('how exact the clocks of many ranks are is told in short', async () => {
  const given = source([0, 1, 2, 3].map((rank) => clock(rank, rank * 1000)).concat(clock(4, null)));
  const shown = await Promise.all([2, 3, 1, 5, 4].map(async (at) => ({ at, run: await given.run(at) })));
  const { note, clocks } = together(await offered(given, 2), shown);
  assert.equal(note, 'on the clock of rank 0, ± 40.0 µs at most; '
    + 'rank 4 not moved: how far its clock is off is not determined');
  assert.equal(clocks.length, 5);
});

test('ranks are moved by their clocks, where collectives told them', async () => {
  const given = source([clock(0, 0), clock(1, -2_830_877, 2e-6), clock(2, null)]);
  const offer = await offered(given, 2);
  const shown = await Promise.all([2, 3, 1].map(async (at) => ({ at, run: await given.run(at) })));
  const { align, labels, moves, clocks, note } = together(offer, shown);
  assert.deepEqual([align, labels], ['clock', ['rank 0', 'rank 1', 'rank 2']]);
  assert.deepEqual(moves.map((move) => move && [move.offset_ns, move.drift, move.at_ns]),
    [null, [-2_830_877, 2e-6, 1e9], null]);
  assert.deepEqual(clocks, ['clock of the view', '± 40.0 µs', 'clock not aligned']);
  assert.equal(note, 'rank 1 moved by −2.83 ms and +2.00 µs/s of drift, ± 40.0 µs; '
    + 'rank 2 not moved: how far its clock is off is not determined');
  const mixed = source([clock(0, 0), clock(1, 5)], ['', '', '1700000000000000000']);
  const both = await Promise.all([2, 3].map(async (at) => ({ at, run: await mixed.run(at) })));
  assert.deepEqual(together(await offered(mixed, 2), both).moves, [null, null]);
});

test('a shift goes from one clock to another through the reference', () => {
  const [first, other] = [clock(1, 300_000, 1e-5), clock(2, 100_000, -2e-5)];
  const move = /** @type {any} */ (shift(first, { ...other, at_ns: 3e9 }, 5e8));
  // What both clocks say of a moment of the reference's, counted from where their traces begin.
  const own = (/** @type {any} */ { offset_ns: offset, drift, at_ns: at }, /** @type {number} */ reference) => (
    (reference - offset + drift * at) / (1 + drift));
  for (const reference of [1e9, 4e9]) {
    const [one, two] = [own(first, reference), own({ ...other, at_ns: 3e9 }, reference)];
    const moved = viewTime({ offset: move.offset_ns, drift: move.drift, driftAt: move.at_ns }, two - 5e8) + 5e8;
    assert.ok(Math.abs(moved - one) < 2, `${moved - one} ns at ${reference}`);
  }
  assert.equal(shift(clock(1, null), other, 0), null);
});

test('other runs are aligned by their steps', async () => {
  const before = { at: 0, run: { title: 'before: x.json', side: 'before' } };
  const shown = /** @type {any} */ ([before, { at: 1, run: { title: 'y' } }]);
  const { align, labels } = together({ job: null, at: null, choices: [] }, shown);
  assert.deepEqual([align, labels], ['steps', ['before', 'y']]);
});
