/** Writes the header of a GGUF file, for tests. */

/** `values` in order; a list becomes an array of strings. */
export function ggufBytes(
  values: Readonly<Record<string, string | number | readonly string[]>>,
): Uint8Array {
  const parts: Uint8Array[] = [];
  const u32 = (value: number) => parts.push(new Uint8Array(new Uint32Array([value]).buffer));
  const u64 = (value: number) =>
    parts.push(new Uint8Array(new BigUint64Array([BigInt(value)]).buffer));
  const text = (value: string) => {
    const bytes = new TextEncoder().encode(value);
    u64(bytes.length);
    parts.push(bytes);
  };
  parts.push(new TextEncoder().encode("GGUF"));
  u32(3);
  u64(0);
  u64(Object.keys(values).length);
  for (const [key, value] of Object.entries(values)) {
    text(key);
    if (typeof value === "number") {
      u32(4);
      u32(value);
    } else if (typeof value === "string") {
      u32(8);
      text(value);
    } else {
      u32(9);
      u32(8);
      u64(value.length);
      value.forEach(text);
    }
  }
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  const bytes = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}

export const LLAMA_8B = {
  "general.architecture": "llama",
  "llama.block_count": 32,
  "llama.context_length": 131_072,
  "llama.embedding_length": 4_096,
  "llama.attention.head_count": 32,
  "llama.attention.head_count_kv": 8,
  "tokenizer.ggml.tokens": ["a", "b", "c"],
} as const;
