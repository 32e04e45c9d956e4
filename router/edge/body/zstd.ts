/** Reads what a zstd frame says of its own size (RFC 8878, 3.1.1.1). */

const MAGIC = [0x28, 0xb5, 0x2f, 0xfd];
const DICTIONARY_BYTES = [0, 1, 2, 4] as const;
const SIZE_BYTES = [0, 2, 4, 8] as const;

/** The unpacked size that the first frame declares; undefined when it declares none. */
export function declaredSize(bytes: Uint8Array): number | undefined {
  const descriptor = bytes[MAGIC.length];
  if (descriptor === undefined || MAGIC.some((byte, index) => bytes[index] !== byte)) {
    return undefined;
  }
  const singleSegment = (descriptor & 0x20) !== 0;
  const sizeFlag = descriptor >> 6;
  const length = sizeFlag === 0 && singleSegment ? 1 : SIZE_BYTES[sizeFlag] ?? 0;
  const start = MAGIC.length + 1 + (singleSegment ? 0 : 1) +
    (DICTIONARY_BYTES[descriptor & 3] ?? 0);
  if (length === 0 || bytes.length < start + length) return undefined;
  let size = 0;
  // Not by shifts: the size may have 64 bits. What a number cannot hold exactly is too much anyway.
  for (let at = start + length - 1; at >= start; at--) size = size * 256 + (bytes[at] ?? 0);
  return length === 2 ? size + 256 : size;
}
