/** Reads what a model's files say about it, on this node. */
import { basename, dirname, join } from "node:path";
import { readGguf } from "../core/model/gguf.ts";
import { readHfConfig, readSafetensorsIndex } from "../core/model/hf_config.ts";
import type { ModelFacts } from "../core/model/model_facts.ts";

export interface ModelReading {
  readonly facts: ModelFacts;
  /** Bytes of all weights; undefined: unknown. */
  readonly weightBytes?: number;
  /** What of its files is missing or spoilt, in a sentence without an end. */
  readonly problem?: string;
}

const JSON_BYTES_MAX = 64 * 1024 * 1024;
/** Sizes stand at the start of a GGUF file, before its tokens. */
const GGUF_BYTES = 1024 * 1024;
/** A file of weights that is smaller is none: a Git LFS pointer has some 130 bytes. */
const WEIGHTS_BYTES_MIN = 512;
const PART = /^(.*)-(\d{5})-of-(\d{5})\.gguf$/;

/**
 * `path` is absolute, a folder in Hugging Face's form or a .gguf file. Never rejects: what the agent
 * may not read, or cannot, is unknown.
 */
export async function readModel(path: string): Promise<ModelReading> {
  try {
    const { isDirectory } = await Deno.stat(path);
    if (isDirectory) return await readFolder(path);
    return /\.gguf$/i.test(path) ? await readGgufFile(path) : { facts: {} };
  } catch {
    return { facts: {} };
  }
}

async function readFolder(path: string): Promise<ModelReading> {
  const sizes = new Map<string, number>();
  for await (const { name } of Deno.readDir(path)) {
    if (!/\.(?:safetensors|bin)$/.test(name)) continue;
    sizes.set(name, (await Deno.stat(join(path, name))).size);
  }
  const facts = readHfConfig(await textOf(join(path, "config.json")) ?? "") ?? {};
  const index = readSafetensorsIndex(
    await textOf(join(path, "model.safetensors.index.json")) ?? "",
  );
  const missing = index?.files.filter((file) => !sizes.has(file)) ?? [];
  if (missing.length > 0) {
    return {
      facts,
      problem:
        `${missing.length} of ${index?.files.length} files of ${path} are not there, such as ${
          missing[0]
        }`,
    };
  }
  // A folder may hold the same weights in both forms: engines take the first.
  const safetensors = [...sizes].filter(([name]) => name.endsWith(".safetensors"));
  const weights = index?.files.map((file) => [file, sizes.get(file) ?? 0] as const) ??
    (safetensors.length > 0 ? safetensors : [...sizes].filter(([name]) => /model/.test(name)));
  const cut = weights.find(([, size]) => size < WEIGHTS_BYTES_MIN);
  if (cut !== undefined) {
    return {
      facts,
      problem: `${join(path, cut[0])} has ${cut[1]} bytes: it is cut short, or a Git LFS pointer`,
    };
  }
  const onDisk = weights.reduce((sum, [, size]) => sum + size, 0);
  const weightBytes = index?.totalBytes ?? onDisk;
  return weightBytes > 0 ? { facts, weightBytes } : { facts };
}

async function readGgufFile(path: string): Promise<ModelReading> {
  const read = readGguf(await firstBytes(path));
  if (read.kind === "not_gguf") {
    return { facts: {}, problem: `${path} is no GGUF file: ${read.why}` };
  }
  const { facts } = read;
  let weightBytes = 0;
  for (const part of partsOf(path)) {
    try {
      weightBytes += (await Deno.stat(part)).size;
    } catch (error) {
      if (!(error instanceof Deno.errors.NotFound)) throw error;
      return { facts, problem: `${part}, a part of the model, is not there` };
    }
  }
  return { facts, weightBytes };
}

// A model in parts is given by its first; the engine finds the others by their names.
function partsOf(path: string): readonly string[] {
  const [, stem, , count] = PART.exec(basename(path)) ?? [];
  if (stem === undefined || count === undefined) return [path];
  return Array.from({ length: Number(count) }, (_, index) => {
    const number = String(index + 1).padStart(5, "0");
    return join(dirname(path), `${stem}-${number}-of-${count}.gguf`);
  });
}

async function firstBytes(path: string): Promise<Uint8Array> {
  using file = await Deno.open(path);
  const bytes = new Uint8Array(GGUF_BYTES);
  let length = 0;
  while (length < bytes.length) {
    const count = await file.read(bytes.subarray(length));
    if (count === null) break;
    length += count;
  }
  return bytes.subarray(0, length);
}

async function textOf(path: string): Promise<string | undefined> {
  try {
    if ((await Deno.stat(path)).size > JSON_BYTES_MAX) return undefined;
    return await Deno.readTextFile(path);
  } catch {
    return undefined;
  }
}
