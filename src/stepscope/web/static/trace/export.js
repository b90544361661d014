/** A range of the trace in forms that other tools read. */
import { overlapping } from './aggregate.js';

const MOST_EVENTS = 300_000;

/**
 * The Chrome trace format: names of processes and threads, and a complete event per slice, in µs.
 * @param {import('./model.js').Model} model
 * @param {number} begin
 * @param {number} end
 * @param {number[]} tracks
 * @returns {{text: string, left: number}} `left` slices found no room
 */
export function chromeEvents(model, begin, end, tracks) {
  /** @type {object[]} */
  const events = [];
  let left = 0;
  for (const number of tracks) {
    const track = model.tracks[number];
    const label = model.sources[track.source].label;
    const pid = 1 + [...new Set(model.tracks.map((one) => `${one.source} ${one.group}`))]
      .indexOf(`${track.source} ${track.group}`);
    events.push({ ph: 'M', name: 'process_name', pid, args: { name: `${label} ${track.group}`.trim() } },
      { ph: 'M', name: 'thread_name', pid, tid: number, args: { name: track.label } },
      { ph: 'M', name: 'thread_sort_index', pid, tid: number, args: { sort_index: number } });
    for (const i of overlapping(model, track, begin, end)) {
      if (events.length >= MOST_EVENTS) {
        left += 1;
        continue;
      }
      events.push({ ph: 'X', name: model.texts[model.name[i]], cat: model.kindNames[model.kinds[model.name[i]]],
        pid, tid: number, ts: model.start[i] / 1000, dur: model.dur[i] / 1000 });
    }
  }
  return { text: JSON.stringify({ traceEvents: events, displayTimeUnit: 'ns' }), left };
}
