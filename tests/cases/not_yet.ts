/**
 * Cases that cannot pass yet, each with what is missing. An entry goes when its part is built: a
 * test fails as soon as a case of this list passes.
 */
export const NOT_YET: ReadonlyMap<string, string> = new Map<string, string>([]);
