/** The pages, in the order of the navigation; the trace follows them. */

import { compare } from './compare.js';
import { input } from './input.js';
import { kernels } from './kernels.js';
import { memory } from './memory.js';
import { ops } from './ops.js';
import { overview } from './overview.js';
import { ranks } from './ranks.js';

export const PAGES = [overview, input, ops, kernels, memory, ranks, compare];
