/** What the pack's tables say of single slices; read when first asked for. */
import { visible } from '../core/text.js';
import { lowerBound } from './lod.js';

/** @typedef {{table: string, name: string, doc: string, unit: string, value: string|number}} Argument */
/** @typedef {{name: string, unit: string, doc: string, text?: boolean, labels?: string[]}} Column */

export class Details {
  /** @param {import('./pack.js').Pack} pack */
  constructor(pack) {
    this.pack = pack;
    /** @type {Promise<{tables: {name: string, columns: Column[]}[], texts: string[]}>|null} */
    this.read = null;
    /** @type {Map<string, Promise<ArrayLike<number>>>} */
    this.columns = new Map();
  }

  /** The tables, and the texts that they refer to. */
  async tables() {
    this.read ??= Promise.all([this.pack.json('details.tables'), this.pack.json('details.texts')])
      .then(([tables, texts]) => ({ tables, texts }));
    return this.read;
  }

  /**
   * @param {number} at the slice's place in the pack
   * @returns {Promise<Argument[]>}
   */
  async of(at) {
    const { tables, texts } = await this.tables();
    const pairs = [];
    for (const table of tables) {
      const row = rowOf(await this.column(`details.${table.name}.at`), at);
      if (row < 0) continue;
      for (const column of table.columns) {
        const values = await this.column(`details.${table.name}.${column.name}`);
        pairs.push(...told(table.name, column, values[row], texts));
      }
    }
    return pairs;
  }

  /**
   * What `of` says, of many slices: everything is read first.
   * @returns {Promise<(at: number) => Argument[]>}
   */
  async all() {
    const { tables, texts } = await this.tables();
    const held = await Promise.all(tables.map(async ({ name, columns }) => ({
      name, columns, places: await this.column(`details.${name}.at`),
      values: await Promise.all(columns.map((column) => this.column(`details.${name}.${column.name}`))),
    })));
    return (at) => held.flatMap(({ name, columns, places, values }) => {
      const row = rowOf(places, at);
      return row < 0 ? [] : columns.flatMap((column, k) => told(name, column, values[k][row], texts));
    });
  }

  /**
   * @param {string} name
   * @returns {Promise<ArrayLike<number>>}
   */
  column(name) {
    let values = this.columns.get(name);
    if (!values) {
      values = this.pack.sections[name].type === 'floats' ? this.pack.floats(name) : this.pack.ints(name);
      this.columns.set(name, values);
    }
    return values;
  }
}

/**
 * @param {ArrayLike<number>} places rising
 * @param {number} at
 */
function rowOf(places, at) {
  const row = lowerBound(places, at);
  return row < places.length && places[row] === at ? row : -1;
}

/** Lists as recorders write them, over several lines, on one. @param {string} text */
function inOneLine(text) {
  return /^[[{]/.test(text) ? text.replace(/\s*\n\s*/g, ' ') : text;
}

/**
 * @param {string} table
 * @param {Column} column
 * @param {number} value
 * @param {string[]} texts
 * @returns {Argument[]} none where the value is absent
 */
function told(table, { name, doc, unit, labels, text }, value, texts) {
  if (Number.isNaN(value) || (labels && value === 0 && labels[0] === 'unknown')) return [];
  return [{ table, name, doc, unit, value: text ? visible(inOneLine(texts[value])) : labels ? labels[value] : value }];
}
