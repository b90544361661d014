/** The panel that asks, of all that is in the view. */
import { parseAsked } from './groups.js';
import { askPanel } from './asking.js';
import { viewTime } from './clock.js';
import { addTrack } from './made.js';

/** @param {import('./app.js').App} app */
export function askTab(app) {
  const shown = (/** @type {[number, number][]} */ list) => list.map(([time, value]) => (
    /** @type {[number, number]} */ ([viewTime(app.meta.sources[0], time), value])));
  return askPanel({
    sql: app.sql,
    groups: (text) => app.ask('groups', { text }),
    text: app.asked,
    setText: (text) => app.setAsked(text),
    queries: app.queries,
    counter: (name, unit, samples) => void app.addCounter(name, unit, shown(samples)),
    track: (text, label, rows) => void addTrack(app, { text, label, rows }),
    shows: 'Show on the tracks',
    show: (text, stretches) => (stretches ? app.setMarks(shown(stretches)) : void app.search(parseAsked(text).search)),
  });
}
