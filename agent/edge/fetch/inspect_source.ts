/** Reads what a model is from a few small files at its source, before anything else is fetched. */
import type { FetchRequest, ReportOf } from "../../core/weights/documents.ts";
import { WeightsError } from "../../core/weights/failure.ts";
import {
  CONFIG_FILE,
  GGUF_BYTES,
  INDEX_FILE,
  JSON_BYTES_MAX,
  type ModelReading,
  readGgufModel,
  readModelFolder,
} from "@heddle/common/model/model_reading";
import type { Http } from "./net/http.ts";
import { listSource } from "./remote/list_source.ts";
import { openHttp } from "./net/open_http.ts";
import { type Patience, withPatience } from "./net/patience.ts";
import type { Progress } from "./progress.ts";
import { readBody, readText } from "./net/read_body.ts";
import type { RemoteFile } from "./remote/remote_file.ts";

/** Throws WeightsError. */
export async function inspectSource(
  request: FetchRequest,
  progress: Progress,
  signal: AbortSignal,
): Promise<ReportOf<"inspected">> {
  using http = await openHttp(request);
  const { listing, selection } = await listSource(request, { http, progress, signal });
  const { files, entry } = selection;
  const reader = new Reader(http, request, signal);
  const { note, ...read } = /\.gguf$/i.test(entry)
    ? await ofGguf(files, entry, reader)
    : await ofFolder(files, entry, reader);
  return {
    kind: "inspected",
    version: listing.version,
    total_bytes: sum(files),
    files: files.length,
    entry,
    facts: { ...read.facts },
    note,
    ...(read.weightBytes === undefined ? {} : { weight_bytes: read.weightBytes }),
  };
}

interface Read extends ModelReading {
  readonly note: string;
}

async function ofGguf(files: readonly RemoteFile[], entry: string, reader: Reader): Promise<Read> {
  const first = files.find(({ path }) => path === entry);
  if (first === undefined) return { facts: {}, note: `${entry} is not among its files` };
  const sizes = new Map(files.map(({ path, size }) => [path, size]));
  const read = readGgufModel({ path: entry, start: await reader.start(first, GGUF_BYTES), sizes });
  if (read.problem !== undefined) throw new WeightsError("corrupt", read.problem);
  return { ...read, note: "" };
}

async function ofFolder(
  files: readonly RemoteFile[],
  entry: string,
  reader: Reader,
): Promise<Read> {
  const inside = new Map(files.flatMap((file) => {
    const name = entry === "" ? file.path : file.path.slice(entry.length + 1);
    const own = entry === "" || file.path.startsWith(`${entry}/`);
    return own && !name.includes("/") ? [[name, file] as const] : [];
  }));
  const text = async (name: string) => {
    const file = inside.get(name);
    return file === undefined ? undefined : await reader.text(file);
  };
  const config = await text(CONFIG_FILE);
  const read = readModelFolder({
    where: "the source",
    sizes: new Map([...inside].map(([name, { size }]) => [name, size])),
    config,
    index: await text(INDEX_FILE),
  });
  const note = read.problem !== undefined
    ? read.problem
    : config === undefined
    ? `it has no ${CONFIG_FILE}, so nothing is known of its layers and heads`
    : Object.keys(read.facts).length === 0
    ? `its ${CONFIG_FILE} cannot be read`
    : "";
  return { ...read, note };
}

function sum(files: readonly RemoteFile[]): number {
  return files.reduce((total, { size }) => total + (size ?? 0), 0);
}

class Reader {
  readonly #http: Http;
  readonly #request: FetchRequest;
  readonly #patience: Patience;

  constructor(http: Http, request: FetchRequest, signal: AbortSignal) {
    this.#http = http;
    this.#request = request;
    const { tries, retry_ms: retryMs } = request;
    this.#patience = { signal, tries, retryMs, onWait: () => {} };
  }

  /** All of a small file. */
  async text(file: RemoteFile): Promise<string> {
    const { signal } = this.#patience;
    return await withPatience(`Cannot read ${file.path}`, this.#patience, async () => {
      const { response } = await this.#http.ask(file.url, { signal });
      const stallMs = this.#request.stall_ms;
      return await readText(response, JSON_BYTES_MAX, { stallMs, signal });
    });
  }

  /** The first bytes of a large one. */
  async start(file: RemoteFile, bytesMax: number): Promise<Uint8Array> {
    const { signal } = this.#patience;
    return await withPatience(`Cannot read ${file.path}`, this.#patience, async () => {
      const enough = new AbortController();
      const { response } = await this.#http.ask(file.url, {
        headers: { range: `bytes=0-${bytesMax - 1}` },
        signal,
      });
      const bytes = new Uint8Array(bytesMax);
      let length = 0;
      try {
        await readBody(response, {
          stallMs: this.#request.stall_ms,
          signal: AbortSignal.any([signal, enough.signal]),
          take(chunk) {
            const part = chunk.subarray(0, bytesMax - length);
            bytes.set(part, length);
            length += part.length;
            // A server that knows no ranges would send all of it.
            if (length === bytesMax) enough.abort();
          },
        });
      } catch (error) {
        if (!enough.signal.aborted || signal.aborted) throw error;
      }
      return bytes.subarray(0, length);
    });
  }
}
