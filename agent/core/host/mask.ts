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
    const [first, ...others] = RULES;
    const uuids = text.replace(first.pattern, (found) => this.#standIn(found, first.standIn));
    const gids = uuids.replace(GID, (found) => this.#gid(found));
    return others.reduce(
      (masked, { pattern, standIn }) =>
        masked.replace(pattern, (found) => this.#standIn(found, standIn)),
      gids,
    );
  }

  /** An address of an interface. What IPv4 it is stays the same as in a GID that is made of it. */
  address(address: string): string {
    const [, mapping = "", ipv4] = /^(::ffff:)?(\d{1,3}(?:\.\d{1,3}){3})$/i.exec(address) ?? [];
    if (ipv4 !== undefined) return `${mapping}${this.#ipv4(ipv4)}`;
    if (!address.includes(":")) return address === "" ? "" : this.#standIn(address, () => "masked");
    if (/^[0:]*1?$/.test(address)) return address;
    const prefix = /^fe80:/i.test(address) ? "fe80" : "2001:db8";
    const bare = address.replace(/[%\/].*$/, "");
    return this.#standIn(bare, (_, count) => `${prefix}::${count.toString(16)}`);
  }

  #ipv4(found: string): string {
    return this.#standIn(found, (address, count) => standInIpv4(address, count));
  }

  #gid(found: string): string {
    if (!/[1-9a-f]/i.test(found)) return found;
    const [, high, low] = /^(?:0{4}:){5}ffff:([0-9a-f]{4}):([0-9a-f]{4})$/i.exec(found) ?? [];
    if (high === undefined || low === undefined) return this.#standIn(found, maskGid);
    const bytes = [high, low].flatMap((group) => [group.slice(0, 2), group.slice(2)]);
    const address = bytes.map((byte) => parseInt(byte, 16)).join(".");
    const [a = 0, b = 0, c = 0, d = 0] = this.#ipv4(address).split(".").map(Number);
    return `0000:0000:0000:0000:0000:ffff:${digits(a * 256 + b, 4)}:${digits(c * 256 + d, 4)}`;
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

// GIDs: the prefix and the form of an IPv4 address are what is asked of them, the rest is not.
const GID = /(?<![0-9a-f:])[0-9a-f]{4}(?::[0-9a-f]{4}){7}(?![0-9a-f:])/gi;

const RULES: readonly [Rule, ...Rule[]] = [
  // UUIDs of GPUs, MIG instances and clusters; an all-zero one says "none" and identifies nothing.
  {
    pattern: /(?<![0-9a-f])(?!0{8}-)[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?![0-9a-f])/gi,
    standIn: (_, count) => `${digits(count, 8)}-0000-4000-8000-${digits(count, 12)}`,
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
    standIn: standInIpv4,
  },
  // Serial numbers stand after their word.
  { pattern: /(?<=serial(?: number)?\s*[:=]\s*)\S+/gi, standIn: (_, count) => digits(count, 13) },
];

function maskGid(gid: string, count: number): string {
  return `${gid.slice(0, 20)}0000:0000:0000:${digits(count, 4)}`;
}

/** Addresses for examples and, beyond 249 of them, for benchmarks. Loopback ones identify nothing. */
function standInIpv4(address: string, count: number): string {
  if (/^(?:127\.|0\.0\.0\.0$)/.test(address)) return address;
  if (count < 250) return `192.0.2.${count}`;
  return `198.${18 + (count >> 16) % 2}.${(count >> 8) % 256}.${count % 256}`;
}

function digits(value: number, width: number): string {
  return value.toString(16).padStart(width, "0").slice(-width);
}
