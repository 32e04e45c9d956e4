/** Reads what a model is from a few small files at its source, before anything else is fetched. */
import type { FetchRequest, ReportOf } from "../../core/weights/documents.ts";
import { WeightsError } from "../../core/weights/failure.ts";
import { readGguf } from "../../core/model/gguf.ts";
import { readHfConfig, readSafetensorsIndex } from "../../core/model/hf_config.ts";
import type { ModelFacts } from "../../core/model/model_facts.ts";
import type { Http } from "./net/http.ts";
import { listSource } from "./remote/list_source.ts";
import { openHttp } from "./net/open_http.ts";
import { type Patience, withPatience } from "./net/patience.ts";
import type { Progress } from "./progress.ts";
import { readBody, readText } from "./net/read_body.ts";
import type { RemoteFile } from "./remote/remote_file.ts";

/** Sizes stand at the start of a GGUF file, before its tokens. */
const GGUF_BYTES = 1024 ** 2;
const TEXT_BYTES_MAX = 64 * 1024 ** 2;

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
  const gguf = files.filter(({ path }) => /\.gguf$/i.test(path));
  const read = entry !== "" && gguf.some(({ path }) => path === entry)
    ? await ofGguf(gguf, entry, reader)
    : await ofFolder(files, entry, reader);
  return {
    kind: "inspected",
    version: listing.version,
    total_bytes: sum(files),
    files: files.length,
    entry,
    facts: { ...read.facts },
    note: read.note,
    ...(read.weightBytes > 0 ? { weight_bytes: read.weightBytes } : {}),
  };
}

interface Read {
  readonly facts: ModelFacts;
  readonly weightBytes: number;
  readonly note: string;
}

async function ofGguf(files: readonly RemoteFile[], entry: string, reader: Reader): Promise<Read> {
  const first = files.find(({ path }) => path === entry);
  const weightBytes = sum(files);
  if (first === undefined) return { facts: {}, weightBytes, note: "" };
  const read = readGguf(await reader.start(first, GGUF_BYTES));
  if (read.kind === "not_gguf") {
    throw new WeightsError("corrupt", `${entry} is no GGUF file: ${read.why}`);
  }
  return { facts: read.facts, weightBytes, note: "" };
}

async function ofFolder(
  files: readonly RemoteFile[],
  entry: string,
  reader: Reader,
): Promise<Read> {
  const at = (name: string) =>
    files.find(({ path }) => path === (entry ? `${entry}/${name}` : name));
  const config = at("config.json");
  const text = config === undefined ? undefined : await reader.text(config);
  const facts = text === undefined ? undefined : readHfConfig(text);
  const indexFile = at("model.safetensors.index.json");
  const index = indexFile === undefined
    ? undefined
    : readSafetensorsIndex(await reader.text(indexFile));
  const weights = files.filter(({ path }) => /\.safetensors$/.test(path));
  const others = files.filter(({ path }) => /\.(?:bin|pt|pth)$/.test(path));
  const note = config === undefined
    ? "it has no config.json, so nothing is known of its layers and heads"
    : facts === undefined
    ? "its config.json cannot be read"
    : "";
  return {
    facts: facts ?? {},
    weightBytes: index?.totalBytes ?? (weights.length > 0 ? sum(weights) : sum(others)),
    note,
  };
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
      return await readText(response, TEXT_BYTES_MAX, { stallMs, signal });
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
