/** Installs llama.cpp from an archive of its release. */
import { join } from "node:path";
import { writeFileAtomic } from "@heddle/common/atomic_file";
import { chooseAsset } from "../../core/install/choose_asset.ts";
import {
  encodeMark,
  ENGINE_MARK,
  InstallError,
  type InstallReport,
  type InstallRequest,
} from "../../core/install/install_documents.ts";
import { decodeRequest, encodeRequest } from "../../core/weights/documents.ts";
import { WeightsError } from "../../core/weights/failure.ts";
import { Http } from "../fetch/net/http.ts";
import type { Patience } from "../fetch/net/patience.ts";
import { Progress } from "../fetch/progress.ts";
import { download } from "../fetch/transfer/download.ts";
import { readRelease } from "./release.ts";
import { seenToRun } from "./seen_to_run.ts";
import { unpack } from "./unpack.ts";

/** Its server's name in the archive, wherever it lies there. */
const SERVER = "llama-server";
const DEPTH_MAX = 4;

export interface InstallHow {
  readonly say: (words: string) => void;
  readonly signal: AbortSignal;
  /** First wait before trying again, in ms. */
  readonly retryMs: number;
}

type Installed = Extract<InstallReport, { kind: "installed" }>;

/** Throws InstallError. Nothing is left of what did not work. */
export async function installArchive(
  request: InstallRequest,
  how: InstallHow,
): Promise<Installed> {
  const { into, engine, version, arch } = request;
  const name = `${engine}-${version}`;
  const work = join(into, `.installing-${name}`);
  await Deno.remove(work, { recursive: true }).catch(() => {});
  await Deno.mkdir(join(work, "unpacked"), { recursive: true, mode: 0o755 });
  try {
    const archive = await fetchArchive(request, work, how);
    how.say("unpacking");
    await unpack(archive, join(work, "unpacked"));
    const found = await findServer(join(work, "unpacked"), DEPTH_MAX);
    if (found === undefined) {
      throw new InstallError("archive_refused", `The archive holds no ${SERVER}`);
    }
    how.say("trying it");
    const said = await seenToRun(found, { arch, shim: request.shim, signal: how.signal });
    const program = found.slice(join(work, "unpacked").length + 1);
    await writeFileAtomic(
      join(work, "unpacked", ENGINE_MARK),
      encodeMark({ engine, version, program }),
      { mode: 0o644 },
    );
    await Deno.rename(join(work, "unpacked"), join(into, name));
    return { kind: "installed", folder: name, path: join(into, name, program), version: said };
  } finally {
    await Deno.remove(work, { recursive: true }).catch(() => {});
  }
}

async function fetchArchive(
  request: InstallRequest,
  work: string,
  { say, signal, retryMs }: InstallHow,
): Promise<string> {
  const { releases, arch, cuda, driver, ca_file } = request;
  using http = new Http({
    token: undefined,
    tokenOrigin: "",
    caCerts: ca_file === undefined ? [] : [await Deno.readTextFile(ca_file)],
    headMs: 30_000,
  });
  const patience: Patience = { signal, tries: 5, retryMs, onWait: (why) => say(why) };
  say("asking for the release");
  const assets = await readRelease(request, http, patience);
  const chosen = chooseAsset(assets, { arch, cuda, driver });
  if (chosen.kind === "none") {
    throw new InstallError(chosen.reason, `Cannot install ${request.version}: ${chosen.why}`);
  }
  const { asset } = chosen;
  const local = releases.startsWith("/") && !/^https?:/.test(asset.url);
  const url = local ? `file://${join(releases, asset.name)}` : asset.url;
  const hash = { algorithm: "sha256" as const, hex: asset.digest.slice("sha256:".length) };
  const file = { path: asset.name, url, size: asset.size, hash, identity: hash.hex };
  using progress = new Progress((report) => {
    if (report.kind === "progress" && report.total_bytes > 0) {
      say(
        `downloading ${asset.name}: ${Math.floor(report.done_bytes / report.total_bytes * 100)} %`,
      );
    }
  });
  if (local) await Deno.copyFile(join(releases, asset.name), join(work, `${asset.name}.part`));
  progress.start();
  progress.begins({ version: request.version, files: 1, bytes: asset.size });
  try {
    if (local) await demandHash(join(work, `${asset.name}.part`), hash.hex, asset.name);
    else {await download([file], {
        request: fetching(work, retryMs),
        folder: work,
        http,
        progress,
        signal,
      });}
  } catch (error) {
    throw error instanceof WeightsError ? installErrorOf(error) : error;
  }
  return join(work, local ? `${asset.name}.part` : asset.name);
}

async function demandHash(path: string, hex: string, name: string): Promise<void> {
  const digest = await crypto.subtle.digest("SHA-256", await Deno.readFile(path));
  if (new Uint8Array(digest).toHex() !== hex) {
    throw new InstallError("corrupt", `${name} has not the SHA-256 that the release gives`);
  }
}

function fetching(into: string, retryMs: number) {
  return decodeRequest(
    encodeRequest({ verb: "fetch", source: "", into, retry_ms: retryMs, tries: 5 }),
  );
}

function installErrorOf(error: WeightsError): InstallError {
  const reason = error.reason === "corrupt" || error.reason === "changed"
    ? "corrupt"
    : error.reason === "disk_full"
    ? "disk_full"
    : error.reason === "source_not_found"
    ? "release_not_found"
    : "unreachable";
  return new InstallError(reason, error.message, { cause: error });
}

async function findServer(folder: string, depth: number): Promise<string | undefined> {
  const folders: string[] = [];
  for await (const { name, isFile, isDirectory } of Deno.readDir(folder)) {
    if (isFile && name === SERVER) return join(folder, name);
    if (isDirectory) folders.push(join(folder, name));
  }
  if (depth === 0) return undefined;
  for (const each of folders.sort()) {
    const found = await findServer(each, depth - 1);
    if (found !== undefined) return found;
  }
  return undefined;
}
