/** What can be chosen by typing: commands, tracks, ways to share a view. */
import { copyText } from '../core/dom.js';
import { MODES } from './colours.js';
import { removeTrack } from './made.js';
import { DEEDS, matching } from './rules.js';

/** @typedef {import('./app.js').App} App */
/** @typedef {import('./boxes.js').Choice} Choice */
/** @typedef {{png: () => void, save: (() => Promise<void>)|null,
 *   ask: (label: string, done: (text: string) => void) => void}} Page what the page does for the viewer; `save` writes
 *   the report with the view */

/**
 * @param {App} app
 * @param {import('./keys.js').Binding[]} list
 * @param {Page} page
 * @returns {Choice[]}
 */
export function commands(app, list, page) {
  return [
    ...list.map((one) => ({ text: one.does, hint: one.show, run: () => one.run(false) })),
    ...MODES.map((mode) => ({ text: `colour by ${mode}`, run: () => app.setLook({ mode }) })),
    { text: 'colour-blind palette on or off',
      run: () => app.setLook({ palette: app.look.palette === 'blind' ? 'standard' : 'blind' }) },
    ...byExpression(app, page),
    { text: 'show all tracks', run: () => app.arrange({ hidden: [], filter: '', closed: [] }) },
    { text: 'unpin all tracks', run: () => app.arrange({ pinned: [] }) },
    { text: 'collapse all tracks to density', run: () => app.arrange({ collapsed: keys(app), expanded: [] }) },
    { text: 'expand all tracks', run: () => app.arrange({ collapsed: [], expanded: keys(app) }) },
    { text: 'one scale for the counters of a group, on or off',
      run: () => app.arrange({ shared: !app.arrangement.shared }) },
    ...app.made.map(({ text, label }) => (
      { text: `remove the track ${label}`, run: () => void removeTrack(app, text) })),
    ...rules(app, page),
    ...layouts(app, page),
    ...shareChoices(app, page),
  ];
}

/** @param {App} app */
function keys(app) {
  return app.rows.map(({ key }) => key);
}

/**
 * @param {App} app
 * @param {Page} page
 * @returns {Choice[]}
 */
function byExpression(app, page) {
  const held = (/** @type {'pinned'|'hidden'} */ list, /** @type {string[]} */ picked) => (
    app.arrange({ [list]: [...new Set([...app.arrangement[list], ...picked])] }));
  const choice = (/** @type {string} */ does, /** @type {(keys: string[]) => void} */ act) => ({
    text: `${does} tracks matching …`,
    run: () => page.ask(`Regular expression of the tracks to ${does}`, (text) => {
      const picked = matching(app.rows, text);
      if (picked) act(picked);
      else app.say(`${text} is no regular expression`);
    }),
  });
  return [
    choice('pin', (picked) => held('pinned', picked)),
    choice('hide', (picked) => held('hidden', picked)),
    choice('show only', (picked) => app.arrange({ hidden: keys(app).filter((key) => !picked.includes(key)) })),
  ];
}

/**
 * @param {App} app
 * @param {Page} page
 * @returns {Choice[]}
 */
function rules(app, page) {
  return [
    ...DEEDS.map((does) => ({ text: `always ${does} tracks matching …`, hint: 'a rule for every trace',
      run: () => page.ask(`Regular expression of the tracks to ${does} in every trace`, (match) => {
        if (matching([], match)) app.setRules([...app.rules, { match, does }]);
        else app.say(`${match} is no regular expression`);
      }) })),
    ...app.rules.map((rule) => ({ text: `forget the rule: ${rule.does} ${rule.match}`,
      run: () => app.setRules(app.rules.filter((one) => one !== rule)) })),
  ];
}

/**
 * @param {App} app
 * @param {Page} page
 * @returns {Choice[]}
 */
function layouts(app, page) {
  const saved = Object.entries(app.savedLayouts());
  return [
    { text: 'save this layout as …', run: () => page.ask('Name of the layout', (name) => app.saveLayout(name)) },
    ...saved.map(([name, layout]) => ({ text: `layout ${name}`, run: () => app.arrange(layout) })),
    ...saved.map(([name]) => ({ text: `forget the layout ${name}`, run: () => app.forgetLayout(name) })),
  ];
}

/**
 * @param {App} app
 * @param {Page} page
 * @returns {Choice[]}
 */
export function shareChoices(app, { save, png }) {
  const link = async () => {
    const hasAddress = /^(https?|file):$/.test(location.protocol);
    const done = hasAddress && await copyText(location.href);
    app.say(done ? 'The link to this view is copied' : 'This frame has no address: save the report with this view');
  };
  return [
    { text: 'copy the link to this view', run: link },
    ...(save ? [{ text: 'save the report with this view and its notes', run: () => {
      save().then(() => app.say('The report is saved: it opens at this view'))
        .catch((error) => app.say(`The report could not be saved: ${error.message}`));
    } }] : []),
    { text: 'save a picture (PNG)', run: png },
  ];
}

/** @param {App} app @returns {Choice[]} */
export function trackChoices(app) {
  const tracks = app.meta.tracks.map((track) => ({
    text: [app.sourceLabels[track.source], track.group, track.label, track.holds].filter(Boolean).join(' · '),
    run: () => {
      app.uncover({ track: track.number, lane: track.firstLane, depth: 0 });
      app.say(track.label);
    },
  }));
  const counters = app.meta.counters.map((counter, at) => ({
    text: [app.sourceLabels[counter.source], counter.group, counter.label].filter(Boolean).join(' · '),
    run: () => {
      app.showRow(app.rows[tracks.length + at].key);
      app.say(counter.label);
    },
  }));
  return [...tracks, ...counters];
}
