/** Of several devices: the mean of all, or the one that is chosen; and figures of all in one. */

import { h } from '../core/dom.js';
import { ALL, deviceName, stepBars } from './steps.js';

/** @typedef {import('../core/types.js').Context} Context */
/** @typedef {import('./related.js').Tile} Tile */

/** The devices that computed. @param {Context} context */
export function usedDevices({ report }) {
  return (report.analyses.breakdown ?? []).filter((entry) => !entry.unused).map(({ device }) => device);
}

/**
 * The device of a page's address, else the first offered, and what chooses another.
 * @param {Context} context
 * @param {string} page
 * @param {(number|null)[]} offered
 * @param {string} label
 */
export function pickDevice(context, page, offered, label) {
  const { place, go } = context;
  const device = offered.find((one) => String(one) === place.params.device) ?? offered[0];
  const choice = h('select', { 'aria-label': label, onchange: () => {
    go(page, { ...place.params, device: choice.value });
  } }, offered.map((one) => h('option', { value: String(one), selected: one === device }, deviceName(context, one))));
  return { device, actions: offered.length > 1 ? [choice] : [] };
}

/**
 * Some categories of each step.
 * @param {Context} context
 * @param {string} page
 * @param {{title: string, only: string[]}} given
 */
export function deviceBars(context, page, { title, only }) {
  const used = usedDevices(context);
  if (!used.length) return null;
  const { device, actions } = pickDevice(context, page, used.length > 1 ? [ALL, ...used] : used, `Device: ${title}`);
  const of = used.length > 1 ? `, ${deviceName(context, device)}` : '';
  return stepBars(context, { title: `${title}${of}`, note: 'A click opens the step in the trace.', device, only,
    actions });
}

/**
 * A figure of each device as one: its mean, with the least and the most.
 * @param {string} label
 * @param {{device: number|null, value: number, rest?: string}[]} each
 * @param {(value: number) => string} format
 * @returns {Tile[]}
 */
export function overDevices(label, each, format) {
  if (!each.length) return [];
  const [first] = each;
  if (each.length === 1) return [[label, format(first.value), first.rest ?? `device ${first.device}`]];
  const sorted = [...each].sort((a, b) => a.value - b.value);
  const [least, most] = [sorted[0], sorted[sorted.length - 1]];
  const mean = sorted.reduce((sum, one) => sum + one.value, 0) / sorted.length;
  const alike = format(least.value) === format(most.value);
  return [[label, format(mean), alike ? `on each of ${each.length} devices` : `mean of ${each.length} devices; ${
    format(least.value)} (device ${least.device}) to ${format(most.value)} (device ${most.device})`]];
}
