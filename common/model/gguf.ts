/** Reads the header of a GGUF file: the sizes of the model, from what its first bytes say. */
import { countOf, known, kvBytes, type ModelFacts } from "./model_facts.ts";

export type GgufReading =
  | { readonly kind: "model"; readonly facts: ModelFacts }
  /** Not GGUF, or damaged; `why` in a few words. */
  | { readonly kind: "not_gguf"; readonly why: string };

const VERSION_MAX = 3;
/** Bytes of numbers by their type: u8 i8 u16 i16 u32 i32 f32 bool … u64 i64 f64. */
const SIZES: Readonly<Record<number, number>> = {
  0: 1,
  1: 1,
  2: 2,
  3: 2,
  4: 4,
  5: 4,
  6: 4,
  7: 1,
  10: 8,
  11: 8,
  12: 8,
};
const STRING = 8;
const ARRAY = 9;
const KEYS_MAX = 10_000;
const ARRAYS_DEEP_MAX = 4;

const OTHER_CACHE =
  /sliding_window|\.ssm\.|\.wkv\.|kv_lora_rank|shared_kv_layers|shortconv|decoder_block_count/;
/** Of these llama.cpp knows by the name that they keep none, or windows. */
const OTHER_ARCHITECTURES = /bert|^llama4$|^rwkv|^mamba|^t5/;

/** The file ends, or what was read of it does: what is known until then counts. */
class Short extends Error {}

/** `bytes` are the file's first, the more the better. Never throws. */
export function readGguf(bytes: Uint8Array): GgufReading {
  const magic = new TextDecoder("latin1").decode(bytes.subarray(0, 4));
  if (magic !== "GGUF") {
    const pointer = new TextDecoder("latin1").decode(bytes.subarray(0, 7)) === "version";
    const why = pointer
      ? "it is a Git LFS pointer, not the file itself"
      : bytes.length < 24
      ? `it is cut short: ${bytes.length} bytes`
      : "it does not begin with GGUF";
    return { kind: "not_gguf", why };
  }
  if (bytes.length < 24) return { kind: "not_gguf", why: `it is cut short: ${bytes.length} bytes` };
  const reader = new Reader(bytes);
  const version = reader.u32(4);
  if (version < 2 || version > VERSION_MAX) {
    return { kind: "not_gguf", why: `its GGUF version ${version} is not known` };
  }
  return { kind: "model", facts: factsOf(valuesOf(reader, reader.u64(16))) };
}

function valuesOf(reader: Reader, count: number): ReadonlyMap<string, unknown> {
  const values = new Map<string, unknown>();
  reader.at = 24;
  try {
    for (let index = 0; index < Math.min(count, KEYS_MAX); index++) {
      const key = reader.text();
      values.set(key, reader.value(reader.next(4), 0));
    }
  } catch (error) {
    if (!(error instanceof Short)) throw error;
  }
  return values;
}

function factsOf(values: ReadonlyMap<string, unknown>): ModelFacts {
  const architecture = values.get("general.architecture");
  if (typeof architecture !== "string") return {};
  const of = (name: string) => countOf(values.get(`${architecture}.${name}`));
  const heads = of("attention.head_count");
  const layers = of("block_count");
  const kvHeads = of("attention.head_count_kv") ?? heads;
  const embedding = of("embedding_length");
  const headDim = of("attention.key_length") ??
    (embedding !== undefined && heads !== undefined ? Math.floor(embedding / heads) : undefined);
  // A list of heads, a window or a state: then layers differ, and nothing simple holds.
  const plain = !OTHER_ARCHITECTURES.test(architecture) &&
    [...values.keys()].every((key) => !OTHER_CACHE.test(key)) &&
    !Array.isArray(values.get(`${architecture}.attention.head_count_kv`)) &&
    (of("attention.value_length") ?? headDim) === headDim;
  return known({
    architecture,
    layers,
    heads,
    kvHeads,
    headDim,
    contextMax: of("context_length"),
    dtype: fileType(values.get("general.file_type")),
    kvBytesPerToken: plain ? kvBytes({ layers, kvHeads, headDim }) : undefined,
  });
}

/** How most of its tensors are stored, by the numbers that llama.cpp gives them. */
const FILE_TYPES: Readonly<Record<number, string>> = {
  0: "F32",
  1: "F16",
  2: "Q4_0",
  3: "Q4_1",
  7: "Q8_0",
  8: "Q5_0",
  9: "Q5_1",
  10: "Q2_K",
  11: "Q3_K_S",
  12: "Q3_K_M",
  13: "Q3_K_L",
  14: "Q4_K_S",
  15: "Q4_K_M",
  16: "Q5_K_S",
  17: "Q5_K_M",
  18: "Q6_K",
  25: "IQ4_NL",
  30: "IQ4_XS",
  32: "BF16",
  38: "MXFP4",
};

function fileType(value: unknown): string | undefined {
  return typeof value === "number" ? FILE_TYPES[value] : undefined;
}

class Reader {
  at = 0;
  readonly #view: DataView;
  readonly #bytes: Uint8Array;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  u32(at: number): number {
    return this.#view.getUint32(at, true);
  }

  u64(at: number): number {
    return Number(this.#view.getBigUint64(at, true));
  }

  /** The next whole number of 4 or 8 bytes. */
  next(size: 4 | 8): number {
    const at = this.#take(size);
    return size === 4 ? this.u32(at) : this.u64(at);
  }

  text(): string {
    const length = this.next(8);
    const at = this.#take(length);
    return new TextDecoder().decode(this.#bytes.subarray(at, at + length));
  }

  /** A value of that type; arrays are walked over, and give an empty one. */
  value(type: number, depth: number): unknown {
    if (type === STRING) return this.text();
    if (type === ARRAY) return this.#array(depth);
    const size = SIZES[type];
    if (size === undefined) throw new Short();
    const at = this.#take(size);
    if (type === 4) return this.#view.getUint32(at, true);
    if (type === 5) return this.#view.getInt32(at, true);
    if (type === 10 || type === 11) return this.u64(at);
    return undefined;
  }

  #array(depth: number): unknown[] {
    const type = this.next(4);
    const count = this.next(8);
    const size = SIZES[type];
    if (size !== undefined) {
      this.#take(size * count);
      return [];
    }
    if (depth >= ARRAYS_DEEP_MAX) throw new Short();
    // Each element takes bytes, so that the end of the bytes ends this too.
    for (let index = 0; index < count; index++) this.value(type, depth + 1);
    return [];
  }

  #take(size: number): number {
    const at = this.at;
    if (!(size >= 0) || at + size > this.#bytes.length) throw new Short();
    this.at = at + size;
    return at;
  }
}
