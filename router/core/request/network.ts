/**
 * Networks of addresses, and who a request really came from. What a client says of itself counts for
 * nothing; what a proxy of ours says of its client does, as far back as proxies of ours pass it on.
 */

/** An address or a network of them, as 128 bits; IPv4 stands in ::ffff:0:0/96. */
export interface Network {
  readonly bits: bigint;
  readonly prefix: number;
}

/** Reads "10.0.0.0/8", "fd00::/8" or one address; undefined for anything else. */
export function parseNetwork(text: string): Network | undefined {
  const [address = "", length, more] = text.split("/");
  const bits = parseIp(address);
  if (bits === undefined || more !== undefined) return undefined;
  const base = address.includes(":") ? 0 : 96;
  if (length === undefined) return { bits, prefix: 128 };
  if (!/^\d{1,3}$/.test(length)) return undefined;
  const prefix = base + Number(length);
  return prefix > 128 ? undefined : { bits, prefix };
}

/**
 * The client's address: the peer's, unless the peer is trusted and says for whom it asks. Of a chain
 * the last address that is not trusted counts: what stands before it anybody could have written.
 */
export function clientAddress(
  peer: string,
  forwardedFor: string | undefined,
  trusted: readonly Network[],
): string {
  let client = bare(peer);
  const hops = (forwardedFor ?? "").split(",").map((hop) => bare(hop.trim()));
  while (isIn(client, trusted)) {
    const hop = hops.pop();
    if (hop === undefined || parseIp(hop) === undefined) return client;
    client = hop;
  }
  return client;
}

/** Whether an address is in one of the networks; what is no address is in none. */
export function isIn(address: string, networks: readonly Network[]): boolean {
  const bits = parseIp(address);
  return bits !== undefined && networks.some((network) => {
    const shift = BigInt(128 - network.prefix);
    return bits >> shift === network.bits >> shift;
  });
}

/** Without port, brackets and zone; IPv4 in IPv6's clothes as itself. */
function bare(text: string): string {
  const address = /^\[([^\]]+)\](?::\d+)?$/.exec(text)?.[1] ??
    /^(\d+\.\d+\.\d+\.\d+):\d+$/.exec(text)?.[1] ?? text;
  return address.replace(/%.*$/, "").replace(/^::ffff:(?=\d+\.\d+\.\d+\.\d+$)/i, "");
}

const V4_BASE = 0xffffn << 32n;

function parseIp(text: string): bigint | undefined {
  const v4 = parseV4(text);
  if (v4 !== undefined) return V4_BASE | v4;
  if (!text.includes(":")) return undefined;
  // A dotted tail is two groups.
  const tail = /^(.*:)(\d+\.\d+\.\d+\.\d+)$/.exec(text);
  const low = tail === null ? 0n : parseV4(tail[2] ?? "");
  if (low === undefined) return undefined;
  const groups = tail === null
    ? text
    : `${tail[1]}${(low >> 16n).toString(16)}:${(low & 0xffffn).toString(16)}`;
  return parseGroups(groups);
}

function parseGroups(text: string): bigint | undefined {
  const [head = "", rest, more] = text.split("::");
  if (more !== undefined) return undefined;
  const left = head === "" ? [] : head.split(":");
  const right = rest === undefined || rest === "" ? [] : rest.split(":");
  const missing = 8 - left.length - right.length;
  if (rest === undefined ? missing !== 0 : missing < 1) return undefined;
  let bits = 0n;
  for (const group of [...left, ...new Array<string>(missing).fill("0"), ...right]) {
    if (!/^[0-9a-f]{1,4}$/i.test(group)) return undefined;
    bits = bits << 16n | BigInt(`0x${group}`);
  }
  return bits;
}

function parseV4(text: string): bigint | undefined {
  const parts = text.split(".");
  if (parts.length !== 4) return undefined;
  let bits = 0n;
  for (const part of parts) {
    // No leading zeros: some readers take them for octal.
    if (!/^(?:0|[1-9]\d{0,2})$/.test(part) || Number(part) > 255) return undefined;
    bits = bits << 8n | BigInt(part);
  }
  return bits;
}
