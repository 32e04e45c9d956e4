/**
 * Keys of clients: `sk-heddle-`, 256 random bits, and a checksum, all in letters and digits. The
 * checksum lets a typo, and a key that leaked into a repository, be recognised without asking anyone;
 * it proves nothing. Only the hash of a key is ever kept: 256 random bits need no slow one.
 */
import { createHash } from "node:crypto";

const PREFIX = "sk-heddle-";
const ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const BASE = BigInt(ALPHABET.length);

/** 62^43 is the first power of 62 above 2^256, 62^6 the first above 2^32. */
const RANDOM_CHARS = 43;
const CHECKSUM_CHARS = 6;
const SECRET_BYTES = 32;
const SECRET_END = 1n << 256n;

const KEY_CHARS = PREFIX.length + RANDOM_CHARS + CHECKSUM_CHARS;

/** As much of a key as people are shown: enough to tell keys apart, 36 bits of the 256. */
const SHOWN_CHARS = PREFIX.length + 6;

/** The key made of 32 random bytes. Throws RangeError for another number of them. */
export function apiKeyFrom(bytes: Uint8Array): string {
  if (bytes.length !== SECRET_BYTES) throw new RangeError(`want ${SECRET_BYTES} bytes`);
  const value = bytes.reduce((sum, byte) => (sum << 8n) | BigInt(byte), 0n);
  const body = PREFIX + base62(value, RANDOM_CHARS);
  return body + checksum(body);
}

/** Whether `text` could be a key: right in form and checksum. Costs the same for any long text. */
export function isApiKey(text: string): boolean {
  if (text.length !== KEY_CHARS || !text.startsWith(PREFIX)) return false;
  const body = text.slice(0, -CHECKSUM_CHARS);
  let value = 0n;
  for (const char of body.slice(PREFIX.length)) {
    const digit = ALPHABET.indexOf(char);
    if (digit < 0) return false;
    value = value * BASE + BigInt(digit);
  }
  return value < SECRET_END && checksum(body) === text.slice(-CHECKSUM_CHARS);
}

/** SHA-256 of the whole key: the one thing that it is looked up by. */
export function apiKeyHash(key: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(createHash("sha256").update(key).digest());
}

/** The part of a key that may be shown and logged. Of anything else, nothing. */
export function shownApiKey(key: string): string {
  return isApiKey(key) ? key.slice(0, SHOWN_CHARS) : "";
}

function base62(value: bigint, length: number): string {
  let text = "";
  for (let rest = value; text.length < length; rest /= BASE) {
    text = ALPHABET.charAt(Number(rest % BASE)) + text;
  }
  return text;
}

function checksum(body: string): string {
  return base62(BigInt(crc32(body)), CHECKSUM_CHARS);
}

// The common reflected CRC-32. Keys are ASCII, so characters are bytes.
const CRC_TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte;
  for (let bit = 0; bit < 8; bit++) crc = (crc & 1) === 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1;
  return crc;
});

function crc32(text: string): number {
  let crc = 0xffffffff;
  for (let index = 0; index < text.length; index++) {
    crc = (CRC_TABLE[(crc ^ text.charCodeAt(index)) & 0xff] ?? 0) ^ (crc >>> 8);
  }
  return (crc ^ 0xffffffff) >>> 0;
}
