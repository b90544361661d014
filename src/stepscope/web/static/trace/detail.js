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

  /**
   * @param {number} at the slice's place in the pack
   * @returns {Promise<Argument[]>}
   */
  async of(at) {
    this.read ??= Promise.all([this.pack.json('details.tables'), this.pack.json('details.texts')])
      .then(([tables, texts]) => ({ tables, texts }));
    const { tables, texts } = await this.read;
    const found = [];
    for (const table of tables) {
      const places = await this.column(`details.${table.name}.at`);
      const row = lowerBound(places, at);
      if (row >= places.length || places[row] !== at) continue;
      for (const column of table.columns) {
        const values = await this.column(`details.${table.name}.${column.name}`);
        const value = values[row];
        if (Number.isNaN(value) || (column.labels && value === 0 && column.labels[0] === 'unknown')) continue;
        const shown = column.text ? visible(texts[value]) : column.labels ? column.labels[value] : value;
        found.push({ table: table.name, name: column.name, doc: column.doc, unit: column.unit, value: shown });
      }
    }
    return found;
  }

  /**
   * @param {string} name
   * @returns {Promise<ArrayLike<number>>}
   */
  column(name) {
    let found = this.columns.get(name);
    if (!found) {
      found = this.pack.sections[name].type === 'floats' ? this.pack.floats(name) : this.pack.ints(name);
      this.columns.set(name, found);
    }
    return found;
  }
}
