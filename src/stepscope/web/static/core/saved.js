/** A report as a file that opens at a view: the page's own HTML, or the server's, with the place in it. */

const ID = 'opening';
const SCRIPT = 'script';

/** Where this page is to open: what a saved report says; '' for none. */
export function openingHash() {
  try {
    const said = JSON.parse(document.getElementById(ID)?.textContent ?? '""');
    return typeof said === 'string' ? said : '';
  } catch {
    return '';
  }
}

/**
 * The element that says where a page opens.
 * @param {string} hash
 */
export function openingElement(hash) {
  // In two parts: the page's own script may not hold what ends it.
  const text = JSON.stringify(hash).replaceAll('<', '\\u003c');
  return `<${SCRIPT} type="application/json" id="${ID}">${text}</${SCRIPT}>\n`;
}

/**
 * This page as it was before its script ran, in pieces: a report of any size is never one string.
 * @param {string} hash
 * @returns {string[]}
 */
export function ownPieces(hash) {
  const scripts = [...document.querySelectorAll('body > script')].filter(({ id }) => id !== ID);
  return [
    '<!doctype html>\n<html lang="en" data-theme="light">\n<head>\n', ...[...document.head.children].flatMap(written),
    '</head>\n<body>\n<div id="app"><noscript>This report needs JavaScript; it fetches nothing.</noscript></div>\n',
    openingElement(hash), ...scripts.flatMap(written), '</body>\n</html>\n',
  ];
}

/**
 * An element of the page's frame as HTML: its text is code and data, which markup does not reach, or the title.
 * @param {Element} element
 * @returns {string[]}
 */
function written(element) {
  const name = element.localName;
  const told = [...element.attributes].map((one) => ` ${one.name}="${escaped(one.value)}"`).join('');
  if (name === 'meta' || name === 'link') return [`<${name}${told}>\n`];
  const text = element.textContent ?? '';
  return [`<${name}${told}>`, name === 'title' ? escaped(text) : text, `</${name}>\n`];
}

/** @param {string} text */
function escaped(text) {
  return text.replaceAll('&', '&amp;').replaceAll('"', '&quot;').replaceAll('<', '&lt;');
}

/**
 * A report of the server in pieces, opening at a place.
 * @param {string} text
 * @param {string} hash
 * @returns {string[]}
 */
export function servedPieces(text, hash) {
  const at = text.indexOf(`<${SCRIPT} type="application/json" class="`);
  return [text.slice(0, at), openingElement(hash), text.slice(at)];
}
