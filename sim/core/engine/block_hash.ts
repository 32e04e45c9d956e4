/**
 * Chained hashes of full KV blocks: a block's hash covers its own tokens and, through its parent's hash,
 * everything before it, so equal hashes mean equal prefixes. 53 bits, because that is what a number holds exactly;
 * the cache compares the tokens as well before it trusts a hit.
 */

/** The parent of a sequence's first block; a salt gives a tenant a cache of its own. */
export function rootHash(salt: string): number {
  let low = 0x9e3779b9;
  let high = 0x85ebca6b;
  for (let index = 0; index < salt.length; index += 1) {
    low = Math.imul(low ^ salt.charCodeAt(index), 0x01000193);
    high = Math.imul(high ^ salt.charCodeAt(index), 0xc2b2ae35) ^ (low >>> 13);
  }
  return join(high, low);
}

/** The hash of the block that holds `tokens[start…end)` after a block with hash `parent`. */
export function blockHash(
  parent: number,
  tokens: readonly number[],
  range: { readonly start: number; readonly end: number },
): number {
  let low = (parent % 2 ** 32) | 0;
  let high = Math.floor(parent / 2 ** 32) | 0;
  for (let index = range.start; index < range.end; index += 1) {
    const token = tokens[index] ?? 0;
    low = Math.imul(low ^ (token | 0), 0x01000193);
    low = Math.imul(low ^ (low >>> 15) ^ Math.floor(token / 2 ** 32), 0x85ebca6b);
    high = Math.imul(high ^ (token | 0) ^ (low >>> 16), 0xc2b2ae35);
    high ^= high >>> 13;
  }
  return join(high ^ Math.imul(low, 0x27d4eb2f), low ^ (low >>> 16));
}

function join(high: number, low: number): number {
  return ((high >>> 0) & 0x1fffff) * 2 ** 32 + (low >>> 0);
}
