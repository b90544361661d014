/** Models of traces as the viewer holds them, made by hand. */

const KINDS = ['host_op', 'kernel', 'idle', 'cause', 'step_window', 'unrecorded', 'annotated'];

/**
 * A model of tracks; a track is a list of lanes, a lane a list of [start, dur, name].
 * @param {[number, number, string][][][]} given
 * @param {Record<string, [number, number]>} [about] kind and category of names
 * @param {[number, number, number][]} [flows]
 * @returns {any}
 */
export function model(given, about = {}, flows = []) {
  const slices = given.flat(2);
  const texts = [...new Set(slices.map(([, , name]) => name))];
  const lanes = [];
  const tracks = [];
  let first = 0;
  for (const [number, track] of given.entries()) {
    tracks.push({ number, id: `track ${number}`, label: `stream ${number}`, type: 'stream', group: 'device 0',
      device: 0, holds: null, source: 0, firstLane: lanes.length, laneCount: track.length });
    for (const lane of track) {
      lanes.push({ track: number, first, count: lane.length });
      first += lane.length;
    }
  }
  const sorted = [...flows].sort((a, b) => a[0] - b[0]);
  return {
    slices: slices.length, start: Float64Array.from(slices, ([start]) => start),
    dur: Uint32Array.from(slices, ([, dur]) => dur),
    name: Uint16Array.from(slices, ([, , name]) => texts.indexOf(name)),
    id: Int32Array.from(slices.keys()), texts, kinds: Uint8Array.from(texts, (text) => about[text]?.[0] ?? 0),
    categories: Uint8Array.from(texts, (text) => about[text]?.[1] ?? 255), precisions: texts.map(() => null),
    kindNames: KINDS, flowKinds: ['arrow', 'launch'],
    categoryList: [{ name: 'compute', label: 'computing', busy: true }, { name: 'copy', label: 'copying', busy: true },
      { name: 'input', label: 'input', busy: false }],
    tracks, lanes, counters: [], steps: [{ name: 'step 4', start: 0, end: 100, source: 0 }],
    sources: [{ header: { rank: 3 }, label: 'rank 3', offset: 0, firstSlice: 0, slices: slices.length }],
    begin: 0, end: Math.max(...slices.map(([start, dur]) => start + dur)),
    flowSource: Int32Array.from(sorted, (f) => f[0]), flowTarget: Int32Array.from(sorted, (f) => f[1]),
    flowKind: Uint8Array.from(sorted, (f) => f[2]),
    byTarget: Int32Array.from(sorted.keys()).sort((a, b) => sorted[a][1] - sorted[b][1]), peers: new Map(),
  };
}
