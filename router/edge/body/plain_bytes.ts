/**
 * The bytes of a Node Buffer without its methods. Whoever searches and cuts them is spared the
 * Buffer's own, which the runtime writes in JavaScript: looking for a byte takes two to three times as long.
 */
export function plainBytes({ buffer, byteOffset, length }: Uint8Array): Uint8Array {
  return new Uint8Array(buffer, byteOffset, length);
}
