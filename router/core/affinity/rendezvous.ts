/**
 * Rendezvous hashing: whoever knows the same replicas sends the same key to the same one, without a
 * word between them, and a replica that comes or goes moves only its own keys.
 */

/** A number of a text for `rendezvous`; the same text has the same one everywhere. */
export function keyOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index++) {
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  }
  return mixed(hash);
}

/** The index of the one that `key` belongs to; -1 of nothing. */
export function rendezvous(key: number, ids: readonly number[]): number {
  const low = key | 0;
  const high = Math.floor(key / 2 ** 32) | 0;
  let best = -1;
  let most = -1;
  for (const [index, id] of ids.entries()) {
    const value = mixed(mixed(low ^ id) ^ high);
    if (value <= most) continue;
    most = value;
    best = index;
  }
  return best;
}

function mixed(hash: number): number {
  let value = hash ^ (hash >>> 16);
  value = Math.imul(value, 0x85ebca6b);
  value ^= value >>> 13;
  value = Math.imul(value, 0xc2b2ae35);
  return (value ^ (value >>> 16)) >>> 0;
}
