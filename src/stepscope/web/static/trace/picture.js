/** What is in sight as a picture: the tracks with their names and the time above them. */
import { h } from '../core/dom.js';
import { formatNs } from '../core/units.js';
import { cut } from './names.js';

const NAMES = 220;
const TOP = 22;

/**
 * @param {import('./app.js').App} app
 * @param {import('./stage.js').Stage} stage
 */
export function picture(app, stage) {
  const { scale, width, height } = stage;
  const canvas = h('canvas');
  canvas.width = width + NAMES * scale;
  canvas.height = height + TOP * scale;
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext('2d'));
  const style = getComputedStyle(stage.element);
  const colour = (/** @type {string} */ name) => style.getPropertyValue(name).trim();
  context.fillStyle = colour('--tv-bg');
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.drawImage(stage.base, NAMES * scale, TOP * scale);
  context.drawImage(stage.over, NAMES * scale, TOP * scale);
  context.scale(scale, scale);
  context.fillStyle = colour('--tv-ink');
  context.font = '11px system-ui, sans-serif';
  context.textBaseline = 'middle';
  const [length, from] = [app.view.span, app.view.begin - app.meta.begin].map((ns) => formatNs(Math.round(ns)));
  context.fillText(`${length} from ${from}`, NAMES + 4, TOP / 2);
  const bottom = height / scale;
  for (const item of app.layout.items) {
    const y = item.y - (item.pinned ? 0 : app.scroll);
    if (y < (item.pinned ? 0 : app.layout.pinnedHeight) || y > bottom) continue;
    context.fillText(cut(item.label, 36), item.type === 'group' ? 4 : 14, TOP + y + 9);
  }
  canvas.toBlob((blob) => {
    if (!blob) return;
    const url = URL.createObjectURL(blob);
    h('a', { href: url, download: 'trace.png' }).click();
    setTimeout(() => URL.revokeObjectURL(url), 10_000);
  });
}
