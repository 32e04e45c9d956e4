/** Reads what a model's files say about it, on this node. */
import { join } from "node:path";
import {
  CONFIG_FILE,
  GGUF_BYTES,
  ggufParts,
  INDEX_FILE,
  JSON_BYTES_MAX,
  type ModelReading,
  readGgufModel,
  readModelFolder,
} from "@heddle/common/model/model_reading";

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
  const sizes = new Map<string, number | undefined>();
  for await (const { name, isDirectory } of Deno.readDir(path)) {
    // A link into a hub's cache may lead nowhere: then the file is not there.
    if (!isDirectory) await addSize(sizes, name, join(path, name));
  }
  const [config, index] = await Promise.all(
    [CONFIG_FILE, INDEX_FILE].map((name) => textOf(join(path, name))),
  );
  return readModelFolder({ where: path, sizes, config, index });
}

async function readGgufFile(path: string): Promise<ModelReading> {
  const sizes = new Map<string, number | undefined>();
  for (const part of ggufParts(path)) await addSize(sizes, part, part);
  return readGgufModel({ path, start: await firstBytes(path), sizes });
}

async function addSize(
  sizes: Map<string, number | undefined>,
  name: string,
  path: string,
): Promise<void> {
  try {
    sizes.set(name, (await Deno.stat(path)).size);
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
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
