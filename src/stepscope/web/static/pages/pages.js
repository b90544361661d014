/** The pages, in the order of the navigation; the trace follows them. */

import { overview } from './overview.js';

export const PAGES = [overview];
