/** Names and keys that no process and no replica ever had. */

/** Of a shard's name in the name of its unit, for which systemd has 255 characters. */
const HANDLE_READABLE_MAX = 100;

/** It becomes the name of a unit, or a mark among a process's arguments: people see it there. */
export function makeHandle(shardId: string): string {
  const readable = shardId.replaceAll(/[^A-Za-z0-9]+/g, "-").slice(0, HANDLE_READABLE_MAX);
  return `${readable}-${crypto.randomUUID().slice(0, 8)}`;
}

/** 256 random bits: a key that nobody guesses needs no slow hash. */
export function makeKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(32));
  return `sk-heddle-replica-${bytes.toBase64({ alphabet: "base64url", omitPadding: true })}`;
}
