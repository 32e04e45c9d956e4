/**
 * What was over a limit when the limit came, by name. The lists may only shrink: split the function
 * or the file, then lower or delete its line here. Never add one.
 */

type Record = Readonly<{ [name: string]: number }>;

/** Functions longer than the limit: `path name`, in lines. */
export const LONG_FUNCTIONS: Record = {};

/** Files longer than the limit, in lines. Tables are long by nature and may stay. */
export const LONG_FILES: Record = {};

/** Folders with more source files than the limit. */
export const FULL_FOLDERS: Record = {};

/** Type casts per file without a comment that says why each holds. */
export const CASTS: Record = {};
