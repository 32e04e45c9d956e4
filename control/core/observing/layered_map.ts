/**
 * Maps that share. The world is a value, so each event makes a new map of nodes or replicas; a copy of
 * all of it for one changed entry makes a thousand registrations cost a million steps. Here a change
 * copies only the changes since the last whole copy, of which there are few: the root of the size.
 */

/** In the upper layer: not in the map, whatever is below. */
const GONE = Symbol("gone");

/** So few changes are not worth merging, whatever the size. */
const LAYER_MIN = 16;

/** The map with these entries set. The same map, unchanged, is still there. */
export function withEntry<K, V>(map: ReadonlyMap<K, V>, key: K, value: V): ReadonlyMap<K, V> {
  return layered(map).with(key, value);
}

/** The map without the key. */
export function withoutEntry<K, V>(map: ReadonlyMap<K, V>, key: K): ReadonlyMap<K, V> {
  return map.has(key) ? layered(map).with(key, GONE) : map;
}

function layered<K, V>(map: ReadonlyMap<K, V>): LayeredMap<K, V> {
  return map instanceof LayeredMap ? map : new LayeredMap(map, new Map(), map.size);
}

/** Entries come in no order that means anything. */
class LayeredMap<K, V> implements ReadonlyMap<K, V> {
  // Not #private: two maps are compared by what they hold.
  private readonly base: ReadonlyMap<K, V>;
  private readonly changes: ReadonlyMap<K, V | typeof GONE>;
  readonly size: number;

  constructor(base: ReadonlyMap<K, V>, changes: ReadonlyMap<K, V | typeof GONE>, size: number) {
    this.base = base;
    this.changes = changes;
    this.size = size;
  }

  with(key: K, value: V | typeof GONE): LayeredMap<K, V> {
    const changes = new Map(this.changes).set(key, value);
    const size = this.size + (value === GONE ? 0 : 1) - (this.has(key) ? 1 : 0);
    const next = new LayeredMap(this.base, changes, size);
    // Copies of the changes and copies of the whole cost the same then.
    const many = changes.size > LAYER_MIN && changes.size ** 2 > 2 * this.base.size;
    return many ? new LayeredMap(new Map(next), new Map(), size) : next;
  }

  get(key: K): V | undefined {
    const changed = this.changes.get(key);
    if (changed === undefined && !this.changes.has(key)) return this.base.get(key);
    return changed === GONE ? undefined : changed;
  }

  has(key: K): boolean {
    const changed = this.changes.get(key);
    if (changed === undefined && !this.changes.has(key)) return this.base.has(key);
    return changed !== GONE;
  }

  entries(): MapIterator<[K, V]> {
    return this.changes.size === 0 ? this.base.entries() : this.both();
  }

  private *both(): MapIterator<[K, V]> {
    for (const [key, value] of this.base) {
      if (!this.changes.has(key)) yield [key, value];
    }
    for (const [key, value] of this.changes) {
      if (value !== GONE) yield [key, value];
    }
  }

  *keys(): MapIterator<K> {
    for (const key of this.base.keys()) if (!this.changes.has(key)) yield key;
    for (const [key, value] of this.changes) if (value !== GONE) yield key;
  }

  *values(): MapIterator<V> {
    for (const [, value] of this.entries()) yield value;
  }

  [Symbol.iterator](): MapIterator<[K, V]> {
    return this.entries();
  }

  forEach(visit: (value: V, key: K, map: ReadonlyMap<K, V>) => void): void {
    for (const [key, value] of this.entries()) visit(value, key, this);
  }
}

/** As much of a set as the world needs; a Set is one. */
export interface Members<K> extends Iterable<K> {
  readonly size: number;
  has(key: K): boolean;
}

/** The set with the key. */
export function withMember<K>(set: Members<K>, key: K): Members<K> {
  return set.has(key) ? set : new LayeredSet(withEntry(mapOf(set), key, true));
}

/** The set without the key. */
export function withoutMember<K>(set: Members<K>, key: K): Members<K> {
  return set.has(key) ? new LayeredSet(withoutEntry(mapOf(set), key)) : set;
}

function mapOf<K>(set: Members<K>): ReadonlyMap<K, true> {
  if (set instanceof LayeredSet) return set.map;
  return new Map([...set].map((key) => [key, true]));
}

class LayeredSet<K> implements Members<K> {
  readonly map: ReadonlyMap<K, true>;

  constructor(map: ReadonlyMap<K, true>) {
    this.map = map;
  }

  get size(): number {
    return this.map.size;
  }

  has(key: K): boolean {
    return this.map.has(key);
  }

  [Symbol.iterator](): Iterator<K> {
    return this.map.keys();
  }
}
