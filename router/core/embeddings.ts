/**
 * Embeddings in the encoding that was asked for. Official clients ask for base64 and read an array
 * of numbers as nothing at all; some engines answer with numbers whatever they are asked.
 */

/** `float` is what a client gets that does not say. */
export type EmbeddingEncoding = "float" | "base64";

/** The answer with every vector in `encoding`, or undefined when it is so already. */
export function reencoded(answer: unknown, encoding: EmbeddingEncoding): unknown {
  if (!isRecord(answer) || !Array.isArray(answer["data"])) return undefined;
  let changed = false;
  const data = answer["data"].map((item: unknown) => {
    if (!isRecord(item)) return item;
    const embedding = converted(item["embedding"], encoding);
    if (embedding === undefined) return item;
    changed = true;
    return { ...item, embedding };
  });
  return changed ? { ...answer, data } : undefined;
}

function converted(embedding: unknown, encoding: EmbeddingEncoding): unknown {
  if (encoding === "base64") return isNumbers(embedding) ? toBase64(embedding) : undefined;
  return typeof embedding === "string" ? toNumbers(embedding) : undefined;
}

// The wire form is 32-bit floats, least significant byte first.
function toBase64(numbers: readonly number[]): string {
  const view = new DataView(new ArrayBuffer(numbers.length * 4));
  numbers.forEach((number, index) => view.setFloat32(index * 4, number, true));
  return new Uint8Array(view.buffer).toBase64();
}

function toNumbers(base64: string): number[] | undefined {
  let bytes: Uint8Array;
  try {
    bytes = Uint8Array.fromBase64(base64);
  } catch {
    return undefined;
  }
  if (bytes.length % 4 !== 0) return undefined;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  return Array.from({ length: bytes.length / 4 }, (_, index) => view.getFloat32(index * 4, true));
}

function isNumbers(value: unknown): value is number[] {
  return Array.isArray(value) && value.every((item) => typeof item === "number");
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
