/** A release server for tests, with archives that a test makes. */
import { createHash } from "node:crypto";
import { type FakeWeb, fakeWeb } from "../fetch/web_fake.ts";

export interface TarEntry {
  readonly path: string;
  readonly body?: string | Uint8Array;
  readonly link?: string;
  readonly mode?: number;
  /** "0" a file, "1" a hard link, "2" a symlink, "5" a folder, "3" a device. */
  readonly type?: string;
}

/** A .tar.gz as tar writes it. */
export async function tarGz(entries: readonly TarEntry[]): Promise<Uint8Array> {
  const blocks = entries.flatMap((entry) => {
    const body = typeof entry.body === "string" ? new TextEncoder().encode(entry.body) : entry.body;
    const content = body ?? new Uint8Array();
    const padded = new Uint8Array(Math.ceil(content.length / 512) * 512);
    padded.set(content);
    return [headOf(entry, content.length), padded];
  });
  const stream = new Blob([...blocks, new Uint8Array(1_024)]).stream()
    .pipeThrough(new CompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

type Assets = Readonly<
  Record<string, { readonly bytes: Uint8Array; readonly digest?: string }>
>;

/** A server with one release, `b1`, whose JSON has these assets. */
export function releaseServer(assets: Assets): Promise<FakeWeb> {
  return releasesServer({ b1: assets });
}

/** A server with releases by their tag, on loopback unless `host` names another address. */
export async function releasesServer(
  releases: Readonly<Record<string, Assets>>,
  host = "127.0.0.1",
): Promise<FakeWeb> {
  const files: Record<string, Uint8Array | string> = {};
  const web = await fakeWeb(files, { host });
  for (const [tag, assets] of Object.entries(releases)) {
    const listed = Object.entries(assets).map(([name, { bytes, digest }]) => {
      files[`/download/${tag}/${name}`] = bytes;
      return {
        name,
        size: bytes.length,
        digest: digest ?? `sha256:${createHash("sha256").update(bytes).digest("hex")}`,
        browser_download_url: `${web.url}/download/${tag}/${name}`,
      };
    });
    files[`/releases/tags/${tag}`] = JSON.stringify({ tag_name: tag, assets: listed });
  }
  return web;
}

function headOf(entry: TarEntry, size: number): Uint8Array<ArrayBuffer> {
  const block = new Uint8Array(512);
  const put = (at: number, text: string) => block.set(new TextEncoder().encode(text), at);
  put(0, entry.path);
  put(100, (entry.mode ?? 0o644).toString(8).padStart(7, "0"));
  put(124, size.toString(8).padStart(11, "0"));
  put(148, "        ");
  put(156, entry.type ?? (entry.link === undefined ? "0" : "2"));
  put(157, entry.link ?? "");
  put(257, "ustar\0" + "00");
  const sum = block.reduce((total, byte) => total + byte, 0);
  put(148, `${sum.toString(8).padStart(6, "0")}\0 `);
  return block;
}
