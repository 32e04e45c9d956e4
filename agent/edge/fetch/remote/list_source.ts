/** What a source is made of now, and which of its files are wanted. */
import { WeightsError } from "../../../core/weights/failure.ts";
import type { FetchRequest } from "../../../core/weights/documents.ts";
import { selectFiles, type Selection } from "../../../core/weights/select_files.ts";
import { parseSource } from "../../../core/weights/source.ts";
import type { Http } from "../net/http.ts";
import { listHub } from "./hub.ts";
import type { Patience } from "../net/patience.ts";
import type { Progress } from "../progress.ts";
import type { RemoteFile, RemoteListing } from "./remote_file.ts";
import { listWeb } from "./web.ts";

export interface Listed {
  readonly listing: RemoteListing;
  readonly selection: Selection<RemoteFile>;
}

/** Throws WeightsError. */
export async function listSource(
  request: FetchRequest,
  how: { readonly http: Http; readonly progress: Progress; readonly signal: AbortSignal },
): Promise<Listed> {
  const source = parseSource(request.source);
  if (source.kind === "invalid") {
    throw new WeightsError("source_invalid", `Cannot use ${request.source}: ${source.why}`);
  }
  if (source.kind !== "hub" && source.kind !== "web") {
    throw new WeightsError("source_invalid", `${request.source} is nothing to fetch`);
  }
  const listing = await listAll(request, how);
  const selected = selectFiles(listing.files, {
    include: request.include,
    exclude: request.exclude,
    ...(source.kind === "hub" && source.file !== undefined ? { file: source.file } : {}),
  });
  if (selected.kind === "nothing") {
    throw new WeightsError("nothing_to_fetch", `Cannot use ${request.source}: ${selected.why}`);
  }
  return { listing, selection: selected.selection };
}

async function listAll(
  request: FetchRequest,
  how: { readonly http: Http; readonly progress: Progress; readonly signal: AbortSignal },
): Promise<RemoteListing> {
  const { http, progress, signal } = how;
  const source = parseSource(request.source);
  const patience: Patience = {
    signal,
    tries: request.tries,
    retryMs: request.retry_ms,
    onWait: (why, waitMs) => progress.waits(why, waitMs),
  };
  if (source.kind === "hub") {
    const { hub: endpoint, version } = request;
    return await listHub(source, { endpoint, http, version }, patience);
  }
  if (source.kind === "web") return await listWeb(source, http, patience, request.stall_ms);
  return { version: "", files: [] };
}
