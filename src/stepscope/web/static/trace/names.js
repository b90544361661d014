/** Names as they fit into a slice. */

/**
 * The part of a kernel's name that tells it from others: without return type, namespaces and arguments.
 * @param {string} name
 * @returns {string}
 */
export function shortName(name) {
  if (name.length < 24) return name;
  const text = name.slice(0, 400).replace(/^(?:void|int|static|__global__) /, '')
    .replace(/\(anonymous namespace\)::/g, '');
  const end = text.search(/[<(]/);
  const head = end > 0 ? text.slice(0, end) : text;
  const at = head.lastIndexOf('::');
  if (at < 0 || /^\w+::[\w.]+$/.test(head)) return text;
  return text.slice(at + 2);
}

/**
 * A text cut to so many characters.
 * @param {string} text
 * @param {number} most
 * @returns {string}
 */
export function cut(text, most) {
  return text.length <= most ? text : `${text.slice(0, Math.max(1, most - 1))}…`;
}

/**
 * A text cut in its middle: names that begin alike differ at their ends.
 * @param {string} text
 * @param {number} most
 */
export function cutMiddle(text, most) {
  if (text.length <= most) return text;
  const tail = Math.floor((most - 1) / 2);
  return `${text.slice(0, most - 1 - tail)}…${text.slice(-tail)}`;
}
