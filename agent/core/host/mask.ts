/**
 * Takes what identifies a machine out of captured texts: UUIDs, GUIDs, addresses, serial numbers,
 * paths and names of processes. The same identifier becomes the same stand-in everywhere, of the
 * same shape, so that what belongs together still does.
 */

/** Masks texts; remembers what it has seen. */
export class Mask {
  readonly #seen = new Map<string, string>();

  /** The text with stand-ins. */
  text(text: string): string {
    return RULES.reduce(
      (masked, { pattern, standIn }) =>
        masked.replace(pattern, (found) => this.#standIn(found, standIn)),
      text,
    );
  }

  #standIn(found: string, make: (found: string, count: number) => string): string {
    const key = found.toLowerCase();
    const known = this.#seen.get(key);
    if (known !== undefined) return known;
    const made = make(found, this.#seen.size + 1);
    this.#seen.set(key, made);
    // A stand-in that is read again (a capture of a replay) stays as it is.
    this.#seen.set(made.toLowerCase(), made);
    return made;
  }
}

interface Rule {
  readonly pattern: RegExp;
  readonly standIn: (found: string, count: number) => string;
}

const RULES: readonly Rule[] = [
  // UUIDs of GPUs, MIG instances and clusters; an all-zero one says "none" and identifies nothing.
  {
    pattern: /(?<![0-9a-f])(?!0{8}-)[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?![0-9a-f])/gi,
    standIn: (_, count) => `${digits(count, 8)}-0000-4000-8000-${digits(count, 12)}`,
  },
  // GIDs: the prefix and the form of an IPv4 address are what is asked of them, the rest is not.
  {
    pattern: /(?<![0-9a-f:])[0-9a-f]{4}(?::[0-9a-f]{4}){7}(?![0-9a-f:])/gi,
    standIn: (found, count) => maskGid(found, count),
  },
  // GUIDs of adapters.
  {
    pattern: /(?<![0-9a-f:])(?!0000:0000:0000:0000)[0-9a-f]{4}(?::[0-9a-f]{4}){3}(?![0-9a-f:])/gi,
    standIn: (_, count) => digits(count, 16).replace(/(.{4})(?=.)/g, "$1:"),
  },
  // Paths, as process names have them.
  { pattern: /(?<![\w.\/])\/(?:[\w.+-]+\/)+[\w.+-]+/g, standIn: (_, count) => `/masked/${count}` },
  // IPv4 addresses. Driver versions have three parts, so that four are an address.
  {
    pattern: /(?<![\d.])\d{1,3}(?:\.\d{1,3}){3}(?![\d.])/g,
    standIn: (_, count) => `192.0.2.${count % 250}`,
  },
  // Serial numbers stand after their word.
  { pattern: /(?<=serial(?: number)?\s*[:=]\s*)\S+/gi, standIn: (_, count) => digits(count, 13) },
];

function maskGid(gid: string, count: number): string {
  if (!/[1-9a-f]/i.test(gid)) return gid;
  if (/^(?:0{4}:){5}ffff:/i.test(gid)) {
    return `0000:0000:0000:0000:0000:ffff:c000:${digits(0x0200 + (count % 250), 4)}`;
  }
  return `${gid.slice(0, 20)}0000:0000:0000:${digits(count, 4)}`;
}

function digits(value: number, width: number): string {
  return value.toString(16).padStart(width, "0").slice(-width);
}
