/**
 * What a model is, from the names and sizes of its files and what a few of them say. The same for
 * files on this node and for files at a source that nobody has fetched yet. Pure.
 */
import { readGguf } from "./gguf.ts";
import { readHfConfig, readSafetensorsIndex } from "./hf_config.ts";
import type { ModelFacts } from "./model_facts.ts";

export interface ModelReading {
  readonly facts: ModelFacts;
  /** Bytes of all weights; undefined: unknown. */
  readonly weightBytes?: number;
  /** What of its files is missing or spoilt, in a sentence without an end. */
  readonly problem?: string;
}

/** Files of a folder in Hugging Face's form that say what its model is. */
export const CONFIG_FILE = "config.json";
export const INDEX_FILE = "model.safetensors.index.json";
/** Sizes stand at the start of a GGUF file, before its tokens. */
export const GGUF_BYTES = 1024 ** 2;
/** The largest JSON file of a model that is read. */
export const JSON_BYTES_MAX = 64 * 1024 ** 2;

/** A file of weights that is smaller is none: a Git LFS pointer has some 130 bytes. */
const WEIGHTS_BYTES_MIN = 512;
const PART = /^(.*)-(\d{5})-of-(\d{5})\.gguf$/i;
const PARTS_MAX = 2_000;
/** What trainers leave beside weights, in the same form. */
const NO_WEIGHTS = /^(?:training_args|optimizer|scheduler|rng_state|random_states)/;
/** The same weights once more, as their maker stores them. */
const SECOND_COPY = /^consolidated/;

export interface ModelFolder {
  /** How messages name it. */
  readonly where: string;
  /** Sizes of the files right in it, by name; undefined: it is there, and its size is not known. */
  readonly sizes: ReadonlyMap<string, number | undefined>;
  /** Texts of CONFIG_FILE and INDEX_FILE, where they can be read. */
  readonly config?: string | undefined;
  readonly index?: string | undefined;
}

/** Reads a folder in Hugging Face's form. Never throws. */
export function readModelFolder({ where, sizes, config, index }: ModelFolder): ModelReading {
  const facts = readHfConfig(config ?? "") ?? {};
  const indexed = readSafetensorsIndex(index ?? "");
  const missing = indexed?.files.filter((file) => !sizes.has(file)) ?? [];
  if (missing.length > 0) {
    const problem =
      `${missing.length} of ${indexed?.files.length} files of ${where} are not there, ` +
      `such as ${missing[0]}`;
    return { facts, problem };
  }
  const files = indexed?.files ?? weightsAmong([...sizes.keys()]);
  const cut = files.find((file) => (sizes.get(file) ?? Infinity) < WEIGHTS_BYTES_MIN);
  if (cut !== undefined) {
    const problem = `${where}/${cut} has ${sizes.get(cut)} bytes: it is cut short, or a Git LFS ` +
      "pointer";
    return { facts, problem };
  }
  const bytes = indexed?.totalBytes ?? totalOf(files.map((file) => sizes.get(file)));
  return bytes === undefined || bytes === 0 ? { facts } : { facts, weightBytes: bytes };
}

export interface GgufModel {
  /** The file that an engine is given: the only one, or the first of its parts. */
  readonly path: string;
  /** Its first bytes, up to GGUF_BYTES. */
  readonly start: Uint8Array;
  /** Sizes of it and of its parts, by path; undefined: it is there, and its size is not known. */
  readonly sizes: ReadonlyMap<string, number | undefined>;
}

/** Reads a model in GGUF. Never throws. */
export function readGgufModel({ path, start, sizes }: GgufModel): ModelReading {
  const read = readGguf(start);
  if (read.kind === "not_gguf") {
    return { facts: {}, problem: `${path} is no GGUF file: ${read.why}` };
  }
  const parts = ggufParts(path);
  const missing = parts.find((part) => !sizes.has(part));
  if (missing !== undefined) {
    return { facts: read.facts, problem: `${missing}, a part of the model, is not there` };
  }
  const weightBytes = totalOf(parts.map((part) => sizes.get(part)));
  return { facts: read.facts, ...(weightBytes === undefined ? {} : { weightBytes }) };
}

/** The file with all of its parts: engines are given the first, and find the others by name. */
export function ggufParts(path: string): readonly string[] {
  const folder = path.slice(0, path.lastIndexOf("/") + 1);
  const name = path.slice(folder.length);
  const [, stem, , count] = PART.exec(name) ?? [];
  if (stem === undefined || count === undefined || Number(count) < 1) return [path];
  const end = name.slice(-".gguf".length);
  return Array.from({ length: Math.min(Number(count), PARTS_MAX) }, (_, index) => {
    const number = String(index + 1).padStart(5, "0");
    return `${folder}${stem}-${number}-of-${count}${end}`;
  });
}

// A folder may hold the same weights in several forms: engines take the first of these.
function weightsAmong(names: readonly string[]): readonly string[] {
  const safetensors = names.filter((name) => name.endsWith(".safetensors"));
  const own = safetensors.filter((name) => !SECOND_COPY.test(name));
  if (safetensors.length > 0) return own.length > 0 ? own : safetensors;
  return names.filter((name) => /\.(?:bin|pt|pth)$/.test(name) && !NO_WEIGHTS.test(name));
}

function totalOf(sizes: readonly (number | undefined)[]): number | undefined {
  let total = 0;
  for (const size of sizes) {
    if (size === undefined) return undefined;
    total += size;
  }
  return total;
}
