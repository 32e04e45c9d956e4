/** What a Hugging Face hub, or a mirror of one, says of a repository. */
import { listFiles, modelInfo } from "@huggingface/hub";
import { WeightsError } from "../../../core/weights/failure.ts";
import { type HubSource, isCommit, isInside } from "../../../core/weights/source.ts";
import { type Http, Retriable } from "../net/http.ts";
import type { FileHash, RemoteFile, RemoteListing } from "./remote_file.ts";
import { type Patience, withPatience } from "../net/patience.ts";

/** More files than that are a data set. */
const FILES_MAX = 20_000;

/**
 * Its files at one commit. A revision is resolved first, so that all files are of the same commit,
 * whatever is pushed meanwhile. Throws WeightsError.
 */
export async function listHub(
  source: HubSource,
  how: { readonly endpoint: string; readonly http: Http; readonly version: string },
  patience: Patience,
): Promise<RemoteListing> {
  const { http, endpoint } = how;
  const { repo } = source;
  const hubUrl = endpoint.replace(/\/+$/, "");
  const hub = { hubUrl, fetch: fetchOf(http, patience.signal) };
  const commit = how.version !== ""
    ? how.version
    : isCommit(source.revision)
    ? source.revision
    : await resolve(source, hub, patience);
  const files = await withPatience(`Cannot list hf://${repo}`, patience, async () => {
    const found: RemoteFile[] = [];
    const entries = listFiles({
      ...hub,
      repo: { type: "model", name: repo },
      revision: commit,
      recursive: true,
    });
    for await (const { type, path, size, oid, lfs } of entries) {
      if (type !== "file") continue;
      if (!isInside(path)) throw leadsOut(repo, path);
      if (found.length >= FILES_MAX) throw tooMany(repo);
      const hash = hashOf(oid, lfs?.oid);
      found.push({
        path,
        url: `${hubUrl}/${repo}/resolve/${commit}/${
          path.split("/").map(encodeURIComponent).join("/")
        }`,
        size: lfs?.size ?? size,
        hash,
        identity: hash?.hex ?? commit,
      });
    }
    return found;
  });
  return { version: commit, files };
}

// A large file's own, or that of a small one as git counts it.
function hashOf(oid: string | undefined, lfs: string | undefined): FileHash | undefined {
  const large = lfs?.replace(/^sha256:/, "") ?? "";
  if (/^[0-9a-f]{64}$/.test(large)) return { algorithm: "sha256", hex: large };
  if (lfs !== undefined || !/^[0-9a-f]{40}$/.test(oid ?? "")) return undefined;
  return { algorithm: "git", hex: oid ?? "" };
}

interface HubCall {
  readonly hubUrl: string;
  readonly fetch: typeof fetch;
}

async function resolve(source: HubSource, hub: HubCall, patience: Patience): Promise<string> {
  const { repo, revision } = source;
  const what = `Cannot resolve hf://${repo}@${revision}`;
  const info = await withPatience(
    what,
    patience,
    async () => await modelInfo({ ...hub, name: repo, revision, additionalFields: ["sha"] }),
  );
  if (!isCommit(info.sha)) {
    throw new WeightsError("unreachable", `${what}: the hub names no commit`);
  }
  return info.sha;
}

// The library reads JSON and pages; the statuses are judged here, in our words.
function fetchOf(http: Http, signal: AbortSignal): typeof fetch {
  return async (input, init) => {
    const url = input instanceof Request ? input.url : String(input);
    const accept = new Headers(init?.headers).get("accept");
    const { response } = await http.ask(url, {
      signal,
      headers: accept === null ? {} : { accept },
    });
    if (!/json/.test(response.headers.get("content-type") ?? "")) {
      await response.body?.cancel();
      throw new Retriable(`${url.replace(/\?.*$/s, "")} answered with no JSON: it is no hub`);
    }
    return response;
  };
}

function leadsOut(repo: string, path: string): WeightsError {
  return new WeightsError("source_invalid", `hf://${repo} holds "${path}", which leads elsewhere`);
}

function tooMany(repo: string): WeightsError {
  return new WeightsError("source_invalid", `hf://${repo} holds more than ${FILES_MAX} files`);
}
