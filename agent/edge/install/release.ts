/** Reads what a release holds: from its JSON on a server, as GitHub gives it, or from a folder. */
import { join } from "node:path";
import { z } from "zod";
import { errorText } from "@heddle/proto/error";
import type { Asset } from "../../core/install/choose_asset.ts";
import { InstallError, type InstallRequest } from "../../core/install/install_documents.ts";
import { WeightsError } from "../../core/weights/failure.ts";
import type { Http } from "../fetch/net/http.ts";
import { type Patience, withPatience } from "../fetch/net/patience.ts";
import { readText } from "../fetch/net/read_body.ts";

const RELEASE_BYTES_MAX = 16 * 1024 ** 2;
const STALL_MS = 30_000;

const releaseSchema = z.object({
  assets: z.array(z.object({
    name: z.string().regex(/^[^/\\]+$/),
    browser_download_url: z.string(),
    size: z.number(),
    digest: z.string().nullish(),
  })),
});

/** Throws InstallError. */
export async function readRelease(
  request: InstallRequest,
  http: Http,
  patience: Patience,
): Promise<readonly Asset[]> {
  const { releases, version } = request;
  const text = releases.startsWith("/")
    ? await fromFolder(join(releases, `${version}.json`))
    : await fromServer(`${releases.replace(/\/+$/, "")}/tags/${encodeURIComponent(version)}`, {
      http,
      patience,
    });
  const parsed = releaseSchema.safeParse(json(text));
  if (!parsed.success) {
    const text = `The release ${version} at ${releases} is no JSON that lists assets`;
    throw new InstallError("release_not_found", text);
  }
  return parsed.data.assets.map(({ name, browser_download_url, size, digest }) => ({
    name,
    url: browser_download_url,
    size,
    digest: digest ?? "",
  }));
}

async function fromFolder(file: string): Promise<string> {
  try {
    return await Deno.readTextFile(file);
  } catch (error) {
    throw new InstallError("release_not_found", `Cannot read ${file}: ${errorText(error)}`);
  }
}

async function fromServer(
  url: string,
  { http, patience }: { readonly http: Http; readonly patience: Patience },
): Promise<string> {
  try {
    return await withPatience(`Cannot read ${url}`, patience, async () => {
      const { signal } = patience;
      const { response } = await http.ask(url, { signal });
      return await readText(response, RELEASE_BYTES_MAX, { stallMs: STALL_MS, signal });
    });
  } catch (error) {
    if (!(error instanceof WeightsError)) throw error;
    const gone = error.reason === "source_not_found";
    throw new InstallError(gone ? "release_not_found" : "unreachable", error.message);
  }
}

function json(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
