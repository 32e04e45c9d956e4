/** Unpacks a .tar.gz into a folder, every path and link looked at before anything of it is written. */
import { dirname, join } from "node:path";
import { errorText } from "@heddle/proto/error";
import { InstallError } from "../../core/install/install_documents.ts";
import { BLOCK, placeOf, readPax, readTarHead, type TarHead } from "../../core/install/tar.ts";

/** Names and pax records; a longer one is no name. */
const RECORD_BYTES_MAX = 64 * 1024;
const ENTRIES_MAX = 100_000;
/** Of all files together: a small archive must not fill a disk. */
const UNPACKED_BYTES_MAX = 64 * 1024 ** 3;

/** Throws `archive_refused` or `corrupt`. What was unpacked until then is the caller's to remove. */
export async function unpack(archive: string, folder: string): Promise<void> {
  // Closing the stream closes the file.
  const file = await Deno.open(archive);
  const source = new BlockSource(file.readable.pipeThrough(new DecompressionStream("gzip")));
  try {
    await unpackAll(source, folder);
    await demandLinksInside(folder, await Deno.realPath(folder));
  } catch (error) {
    if (error instanceof InstallError) throw error;
    throw new InstallError("corrupt", `Cannot unpack ${archive}: ${errorText(error)}`, {
      cause: error,
    });
  } finally {
    await source.close();
  }
}

async function unpackAll(source: BlockSource, folder: string): Promise<void> {
  let next: { path?: string; link?: string } = {};
  let bytes = 0;
  for (let count = 0; count < ENTRIES_MAX; count++) {
    const block = await source.take(BLOCK);
    const head = block === undefined ? undefined : readTarHead(block);
    if (head === undefined) return;
    if (head.type === "long_name" || head.type === "long_link" || head.type === "pax") {
      next = { ...next, ...await recordOf(source, head) };
      continue;
    }
    const entry = { ...head, path: next.path ?? head.path, link: next.link ?? head.link };
    next = {};
    bytes += entry.size;
    if (bytes > UNPACKED_BYTES_MAX) throw refused("it unpacks to more than 64 GiB");
    await unpackEntry(source, entry, folder);
  }
  throw refused(`it has more than ${ENTRIES_MAX} entries`);
}

async function recordOf(
  source: BlockSource,
  head: TarHead,
): Promise<{ path?: string; link?: string }> {
  if (head.size > RECORD_BYTES_MAX) throw refused("a name in it is absurdly long");
  const bytes = await source.body(head.size);
  if (head.type === "pax") return readPax(bytes);
  const name = new TextDecoder().decode(bytes).replace(/\0.*$/s, "");
  return head.type === "long_name" ? { path: name } : { link: name };
}

async function unpackEntry(source: BlockSource, entry: TarHead, folder: string): Promise<void> {
  const place = placeOf(entry);
  if (place.kind === "refused") throw refused(place.why);
  if (place.kind === "itself") return void await source.body(entry.size);
  const path = join(folder, place.path);
  // A link that an earlier entry made must not be walked through.
  await demandRealFolders(folder, place.path);
  await Deno.mkdir(dirname(path), { recursive: true, mode: 0o755 });
  switch (entry.type) {
    case "folder":
      await Deno.mkdir(path, { recursive: true, mode: 0o755 });
      return;
    case "symlink":
      await Deno.symlink(entry.link, path);
      return;
    case "hardlink": {
      const of = join(folder, entry.link);
      await demandRealFolders(folder, entry.link);
      // A copy would be of what a link leads to, wherever that is.
      if (!(await Deno.lstat(of)).isFile) throw refused(`"${entry.path}" is a link to no file`);
      await Deno.copyFile(of, path);
      return;
    }
    default: {
      const mode = (entry.mode & 0o111) === 0 ? 0o644 : 0o755;
      const file = await Deno.open(path, { write: true, createNew: true, mode });
      await source.copy(entry.size, file).finally(() => file.close());
    }
  }
}

/**
 * Where links lead once all are there: one that looks as if it stays inside may go through another one
 * that is shorter than its name.
 */
async function demandLinksInside(folder: string, root: string): Promise<void> {
  for await (const { name, isDirectory, isSymlink } of Deno.readDir(folder)) {
    const path = join(folder, name);
    if (isDirectory) await demandLinksInside(path, root);
    if (!isSymlink) continue;
    const to = await Deno.realPath(path).catch(() => undefined);
    if (to === undefined) throw refused(`"${name}" is a link to what is not there`);
    if (to !== root && !to.startsWith(`${root}/`)) {
      throw refused(`"${name}" is a link that leads out of the folder, to "${to}"`);
    }
  }
}

async function demandRealFolders(folder: string, path: string): Promise<void> {
  let at = folder;
  for (const part of path.split("/").slice(0, -1)) {
    at = join(at, part);
    const info = await Deno.lstat(at).catch(() => undefined);
    if (info === undefined) return;
    if (!info.isDirectory) throw refused(`"${path}" goes through what is no folder`);
  }
}

function refused(why: string): InstallError {
  return new InstallError("archive_refused", `The archive must not be unpacked: ${why}`);
}

/** Bytes of a stream, in the amounts that are asked for. */
class BlockSource {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  #rest = new Uint8Array();

  constructor(stream: ReadableStream<Uint8Array>) {
    this.#reader = stream.getReader();
  }

  /** So many bytes; undefined at the end. Throws when it ends in between. */
  async take(count: number): Promise<Uint8Array | undefined> {
    const parts: Uint8Array[] = [];
    let had = 0;
    while (had < count) {
      const part = await this.#some(count - had);
      if (part === undefined) {
        if (had === 0) return undefined;
        throw new Error("it is cut short");
      }
      parts.push(part);
      had += part.length;
    }
    const whole = new Uint8Array(count);
    let at = 0;
    for (const part of parts) {
      whole.set(part, at);
      at += part.length;
    }
    return whole;
  }

  /** The body of an entry, with what fills its last block taken away. */
  async body(size: number): Promise<Uint8Array> {
    if (size === 0) return new Uint8Array();
    const whole = await this.take(padded(size));
    if (whole === undefined) throw new Error("it is cut short");
    return whole.subarray(0, size);
  }

  async copy(size: number, file: Deno.FsFile): Promise<void> {
    for (let left = size; left > 0;) {
      const part = await this.#some(left);
      if (part === undefined) throw new Error("it is cut short");
      for (let rest = part; rest.length > 0;) rest = rest.subarray(file.writeSync(rest));
      left -= part.length;
    }
    if (padded(size) > size) await this.take(padded(size) - size);
  }

  async close(): Promise<void> {
    await this.#reader.cancel().catch(() => {});
  }

  async #some(most: number): Promise<Uint8Array | undefined> {
    while (this.#rest.length === 0) {
      const { value, done } = await this.#reader.read();
      if (done) return undefined;
      this.#rest = new Uint8Array(value);
    }
    const part = this.#rest.subarray(0, most);
    this.#rest = this.#rest.subarray(part.length);
    return part;
  }
}

function padded(size: number): number {
  return Math.ceil(size / BLOCK) * BLOCK;
}
