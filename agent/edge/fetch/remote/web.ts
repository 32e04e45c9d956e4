/**
 * What lies at an address that is no hub: one file, the parts of one, a model by its index, or a
 * folder that a web server shows. Where a folder has SHA256SUMS, every file is checked against it.
 */
import { createHash } from "node:crypto";
import { WeightsError } from "../../../core/weights/failure.ts";
import { isInside, type WebSource } from "../../../core/weights/source.ts";
import { readSafetensorsIndex } from "@heddle/common/model/hf_config";
import { type Http, Retriable, shown } from "../net/http.ts";
import { type Patience, withPatience } from "../net/patience.ts";
import { readText } from "../net/read_body.ts";
import { type FileHash, type RemoteFile, type RemoteListing, tagOf } from "./remote_file.ts";

const SUMS = "SHA256SUMS";
const INDEX = /\.safetensors\.index\.json$/;
const PART = /^(.*-)00001(-of-)(\d{5})(\.gguf)$/i;
const TEXT_BYTES_MAX = 64 * 1024 ** 2;
const FILES_MAX = 2_000;
/** What no server shows as a page, unless it shows something else in its place. */
const WEIGHTS = /\.(?:safetensors|gguf|bin|pt|pth|ckpt)$/i;
/** Asked for at once about their sizes. */
const HEADS_AT_ONCE = 8;

/** Beside the weights that an index names: what an engine reads too, where it is there. */
const COMPANIONS = [
  "config.json",
  "generation_config.json",
  "tokenizer.json",
  "tokenizer_config.json",
  "tokenizer.model",
  "special_tokens_map.json",
  "added_tokens.json",
  "vocab.json",
  "merges.txt",
  "chat_template.jinja",
  "chat_template.json",
  "preprocessor_config.json",
] as const;

interface Named {
  readonly path: string;
  readonly hash?: FileHash;
  /** It may be missing. */
  readonly optional?: boolean;
}

/** The files at a source, with sizes where the server tells them. Throws WeightsError. */
export async function listWeb(
  source: WebSource,
  http: Http,
  patience: Patience,
  stallMs: number,
): Promise<RemoteListing> {
  const web = new Web(http, patience, stallMs);
  const named = await web.names(source.url);
  if (named.length === 0) {
    throw new WeightsError("nothing_to_fetch", `${shown(source.url)} shows no files`);
  }
  const files: RemoteFile[] = [];
  for (let first = 0; first < named.length; first += HEADS_AT_ONCE) {
    const asked = named.slice(first, first + HEADS_AT_ONCE).map((each) =>
      web.look(source.url, each)
    );
    for (const file of await Promise.all(asked)) if (file !== undefined) files.push(file);
  }
  const text = files.map(({ path, size, identity }) => `${path} ${size} ${identity}\n`).sort().join(
    "",
  );
  return { version: createHash("sha1").update(text).digest("hex"), files };
}

class Web {
  readonly #http: Http;
  readonly #patience: Patience;
  readonly #stallMs: number;

  constructor(http: Http, patience: Patience, stallMs: number) {
    this.#http = http;
    this.#patience = patience;
    this.#stallMs = stallMs;
  }

  async names(url: string): Promise<readonly Named[]> {
    if (new URL(url).pathname.endsWith("/")) return await this.#folder(url);
    const name = lastName(url);
    if (INDEX.test(name)) return await this.#index(url, name);
    const [, before, of, count, end] = PART.exec(name) ?? [];
    if (count === undefined) return [{ path: name }];
    return Array.from({ length: Math.min(Number(count), FILES_MAX) }, (_, index) => ({
      path: `${before}${String(index + 1).padStart(5, "0")}${of}${count}${end}`,
    }));
  }

  /** Its size and what changes with it. Undefined for an optional file that is not there. */
  async look(base: string, named: Named): Promise<RemoteFile | undefined> {
    const name = lastName(base);
    // A query belongs to the one file that it was given with.
    const url = named.path === name ? base : new URL(encodePath(named.path), base).href;
    const headers = await this.#optionally(named.optional ?? false, url, async () => {
      const { signal } = this.#patience;
      try {
        const { response } = await this.#http.ask(url, { method: "HEAD", signal });
        return response.headers;
      } catch (error) {
        if (!(error instanceof WeightsError) || error.reason === "source_not_found") throw error;
        // Some servers answer no HEAD.
        const { response } = await this.#http.ask(url, { headers: { range: "bytes=0-0" }, signal });
        await response.body?.cancel();
        return response.headers;
      }
    });
    if (headers === undefined) return undefined;
    const { path, hash } = named;
    if (hash === undefined && WEIGHTS.test(path) && isPage(headers)) throw sentPage(url);
    const size = sizeIn(headers);
    const identity = headers.get("etag") ?? headers.get("last-modified") ?? `size ${size ?? "?"}`;
    return { path, url, size, hash, identity: hash?.hex ?? identity, tag: tagOf(headers) };
  }

  async #folder(url: string): Promise<readonly Named[]> {
    const sums = await this.#text(new URL(SUMS, url).href, true);
    if (sums !== undefined) return namesInSums(sums);
    return namesInListing(await this.#text(url, false) ?? "", url);
  }

  async #index(url: string, name: string): Promise<readonly Named[]> {
    const index = readSafetensorsIndex(await this.#text(url, false) ?? "");
    if (index === undefined || index.files.length === 0) {
      throw new WeightsError("source_invalid", `${shown(url)} is no index of safetensors files`);
    }
    return [
      { path: name },
      ...index.files.slice(0, FILES_MAX).map((path) => ({ path })),
      ...COMPANIONS.map((path) => ({ path, optional: true })),
    ];
  }

  async #text(url: string, optional: boolean): Promise<string | undefined> {
    return await this.#optionally(optional, url, async () => {
      const { signal } = this.#patience;
      const { response } = await this.#http.ask(url, { signal });
      return await readText(response, TEXT_BYTES_MAX, { stallMs: this.#stallMs, signal });
    });
  }

  async #optionally<T>(
    optional: boolean,
    url: string,
    work: () => Promise<T>,
  ): Promise<T | undefined> {
    try {
      return await withPatience(`Cannot look at ${shown(url)}`, this.#patience, work);
    } catch (error) {
      const absent = error instanceof WeightsError &&
        (error.reason === "source_not_found" || error.reason === "forbidden");
      if (optional && absent) return undefined;
      throw error;
    }
  }
}

/** The lines of sha256sum; of a file that is named twice, as after an append, the last one. */
export function namesInSums(text: string): readonly Named[] {
  const named = [...text.matchAll(/^([0-9a-f]{64}) [ *](.+)$/gm)].flatMap(
    ([, hex = "", path = ""]) => {
      const plain = path.replace(/^\.\//, "");
      if (!isInside(plain)) return [];
      return [{ path: plain, hash: { algorithm: "sha256" as const, hex } }];
    },
  );
  return [...new Map(named.map((each) => [each.path, each])).values()].slice(0, FILES_MAX);
}

/** Files that a web server's page shows: nginx's JSON, or the links of its HTML and of others'. */
export function namesInListing(text: string, base: string): readonly Named[] {
  const hrefs = /^\s*\[/.test(text)
    ? [...text.matchAll(/"name"\s*:\s*"([^"]+)"\s*,\s*"type"\s*:\s*"file"/g)].map(([, name]) =>
      encodePath(name ?? "")
    )
    : [...text.matchAll(/<a\s[^>]*href="([^"]+)"/gi)].map(([, href]) => href ?? "");
  const names = hrefs.flatMap((href) => {
    let url: URL;
    try {
      url = new URL(href.replaceAll("&amp;", "&"), base);
    } catch {
      return [];
    }
    const folder = new URL(base);
    if (url.origin !== folder.origin || url.search !== "") return [];
    if (!url.pathname.startsWith(folder.pathname)) return [];
    const path = decodePath(url.pathname.slice(folder.pathname.length));
    return path !== undefined && isInside(path) ? [path] : [];
  });
  return [...new Set(names)].slice(0, FILES_MAX).map((path) => ({ path }));
}

function isPage(headers: Headers): boolean {
  return /^\s*(?:text\/html|application\/xhtml)/i.test(headers.get("content-type") ?? "");
}

function sentPage(url: string): WeightsError {
  return new WeightsError(
    "unreachable",
    `${shown(url)} answered with a page in the place of the file: a login's, or a proxy's`,
  );
}

function lastName(url: string): string {
  const name = decodePath(new URL(url).pathname.split("/").at(-1) ?? "");
  if (name === "") return "";
  if (name === undefined || !isInside(name) || name.includes("/")) {
    throw new WeightsError("source_invalid", `${shown(url)} does not end in a file's name`);
  }
  return name;
}

function encodePath(path: string): string {
  return path.split("/").map(encodeURIComponent).join("/");
}

function decodePath(path: string): string | undefined {
  try {
    return decodeURIComponent(path);
  } catch {
    return undefined;
  }
}

/** Of the whole file, whether all of it was asked for or one byte. */
function sizeIn(headers: Headers): number | undefined {
  const [, total] = /^bytes .*\/(\d+)$/.exec(headers.get("content-range") ?? "") ?? [];
  const text = total ?? headers.get("content-length") ?? "";
  const size = /^\d+$/.test(text) ? Number(text) : undefined;
  if (size !== undefined && !Number.isSafeInteger(size)) throw new Retriable("its size is absurd");
  return size;
}
