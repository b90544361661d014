/** Elements, made without markup: whatever a trace holds only ever becomes text. */

const SVG = 'http://www.w3.org/2000/svg';

/** @typedef {Node|string|number|null|undefined|false} Child */
/** @typedef {Record<string, unknown>} Props */

/**
 * An HTML element. Functions in `props` are listeners (`onclick`), `style` is an object of CSS properties, other values
 * are attributes; null and false leave one out.
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {Props|null} [props]
 * @param {...(Child|Child[])} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export function h(tag, props, ...children) {
  const element = document.createElement(tag);
  fill(element, props ?? {}, children);
  return element;
}

/**
 * An SVG element.
 * @template {keyof SVGElementTagNameMap} K
 * @param {K} tag
 * @param {Props|null} [props]
 * @param {...(Child|Child[])} children
 * @returns {SVGElementTagNameMap[K]}
 */
export function s(tag, props, ...children) {
  const element = document.createElementNS(SVG, tag);
  fill(element, props ?? {}, children);
  return element;
}

/**
 * @param {HTMLElement|SVGElement} element
 * @param {Props} props
 * @param {(Child|Child[])[]} children
 */
function fill(element, props, children) {
  for (const [name, value] of Object.entries(props)) {
    if (!leftOut(value)) setProp(element, name, value);
  }
  for (const child of children.flat()) {
    if (!leftOut(child)) element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

/** @param {unknown} value */
function leftOut(value) {
  return value === null || value === undefined || value === false;
}

/**
 * @param {HTMLElement|SVGElement} element
 * @param {string} name
 * @param {unknown} value
 */
function setProp(element, name, value) {
  if (typeof value === 'function') {
    element.addEventListener(name.slice(2), /** @type {EventListener} */ (value));
  } else if (name === 'style') {
    // Not the attribute, which a content security policy forbids.
    for (const [key, text] of Object.entries(/** @type {Record<string, string>} */ (value))) {
      element.style.setProperty(key, text);
    }
  } else {
    element.setAttribute(name, value === true ? '' : String(value));
  }
}

/**
 * Put other children in place of an element's own.
 * @param {Element} element
 * @param {...(Child|Child[])} children
 */
export function put(element, ...children) {
  element.replaceChildren();
  fill(/** @type {HTMLElement} */ (element), {}, children);
}

/**
 * Text to the clipboard, also where the clipboard API is not allowed (frames); whether it worked.
 * @param {string} text
 */
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = h('textarea', { class: 'sr' });
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand('copy');
    area.remove();
    return done;
  }
}

/**
 * Offer text, or pieces of it, as a file.
 * @param {string} name
 * @param {string|string[]} text
 * @param {string} type
 */
export function download(name, text, type) {
  const url = URL.createObjectURL(new Blob([text].flat(), { type }));
  const link = h('a', { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
