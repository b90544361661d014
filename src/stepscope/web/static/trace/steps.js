/** Which step a slice is in: on a device by that device's windows, on the host by the host's, which run ahead. */
import { lowerBound } from './lod.js';

/** @typedef {import('./model.js').Model} Model */
/** @typedef {import('./model.js').Track} Track */

const NAMED = /^step (\d+)$/;

/**
 * The window of the steps that a track is in at a time, `step 4` or `between the steps`; null where there are none.
 * @param {Model} model
 * @param {Track} track
 * @param {number} time
 * @returns {string|null}
 */
export function windowAt(model, track, time) {
  const windows = model.tracks.find((one) => one.type === 'steps' && one.source === track.source
    && one.device === track.device);
  if (!windows) return null;
  for (let at = windows.firstLane; at < windows.firstLane + windows.laneCount; at += 1) {
    const { first, count } = model.lanes[at];
    const i = lowerBound(model.start, time + 0.5, first, first + count) - 1;
    if (i >= first && time < model.start[i] + model.dur[i]) return model.texts[model.name[i]];
  }
  return null;
}

/**
 * The number of the step that a track is in at a time; NaN where it is in none.
 * @param {Model} model
 * @param {Track} track
 * @param {number} time
 */
export function stepAt(model, track, time) {
  return Number(NAMED.exec(windowAt(model, track, time) ?? '')?.[1] ?? NaN);
}
