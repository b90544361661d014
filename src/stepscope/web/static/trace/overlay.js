/** What lies over the pixels: arrows between slices, and the lines of notes. */

const MARK_PIXELS = 5;

/**
 * @param {import('./stage.js').Stage} stage
 * @param {CanvasRenderingContext2D} context
 * @param {string} accent
 */
export function drawArrows(stage, context, accent) {
  context.lineWidth = 1.4 * stage.scale;
  for (const { from, to } of stage.app.arrows) {
    const [a, b] = [stage.box(from.lane, from.start, from.dur), stage.box(to.lane, to.start, to.dur)];
    if (!a || !b) continue;
    // What is scrolled behind the pinned tracks is pointed to at their edge.
    const pinned = stage.app.layout.pinnedHeight * stage.scale;
    const [x0, y0] = [stage.x(from.start), a.hidden ? pinned : a.y + a.height / 2];
    const [x1, y1] = [stage.x(to.start), b.hidden ? pinned : b.y + b.height / 2];
    const bend = Math.max(20 * stage.scale, Math.abs(x1 - x0) * 0.4);
    context.strokeStyle = accent;
    context.beginPath();
    context.moveTo(x0, y0);
    context.bezierCurveTo(x0 + bend, y0, x1 - bend, y1, x1, y1);
    context.stroke();
    context.fillStyle = accent;
    context.beginPath();
    context.moveTo(x1, y1);
    context.lineTo(x1 - 7 * stage.scale, y1 - 4 * stage.scale);
    context.lineTo(x1 - 7 * stage.scale, y1 + 4 * stage.scale);
    context.fill();
  }
}

/**
 * @param {import('./stage.js').Stage} stage
 * @param {CanvasRenderingContext2D} context
 * @param {string} accent
 */
export function drawNotes(stage, context, accent) {
  context.strokeStyle = accent;
  for (const note of stage.app.notes) {
    const x = stage.x(note.time);
    strokeLine(context, x, 0, x, stage.height);
  }
}

/**
 * What a query found, along the upper edge of the tracks.
 * @param {import('./stage.js').Stage} stage
 * @param {CanvasRenderingContext2D} context
 * @param {string} colour
 */
export function drawMarks(stage, context, colour) {
  context.fillStyle = colour;
  for (const [start, dur] of stage.app.marks) {
    const [x0, x1] = [stage.x(start), stage.x(start + dur)];
    if (x1 >= 0 && x0 <= stage.width) context.fillRect(x0, 0, Math.max(x1 - x0, 2), MARK_PIXELS * stage.scale);
  }
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {number} x0
 * @param {number} y0
 * @param {number} x1
 * @param {number} y1
 */
export function strokeLine(context, x0, y0, x1, y1) {
  context.beginPath();
  context.moveTo(x0, y0);
  context.lineTo(x1, y1);
  context.stroke();
}
