/**
 * The agent's state directory:
 *
 *     node.json                            highest revision ever accepted
 *     home/                                HOME of the engines
 *     shards/s-<id>/state.json             what the shard is, with its key: 0600
 *     shards/s-<id>/run-<handle>/          what belongs to one of its processes: env, log, exit
 *     shards/corrupt-<time>-s-<id>/        a shard's folder that could not be used
 */
import { basename, join } from "node:path";
import { fromJson, type JsonValue, toJson } from "@bufbuild/protobuf";
import { z } from "zod";
import { readTextIfExists, writeFileAtomic } from "@heddle/common/atomic_file";
import { errorText, HeddleError } from "@heddle/proto/error";
import { ShardSpecSchema } from "@heddle/proto/gen/types";
import { NO_REVISION, type Revision } from "@heddle/proto/revision";
import { decodeDocument, encodeDocument } from "../core/shard/document.ts";
import type { Shard, ShardSpec } from "../core/shard/shard.ts";
import { specMessage } from "./wire_spec.ts";

/** A shard's file that this version cannot use. */
export interface Unusable {
  readonly shardId: string;
  /** The shard's folder, below which its processes have theirs. */
  readonly directory: string;
  readonly why: string;
  readonly spec: ShardSpec | undefined;
}

export interface Loaded {
  readonly shards: readonly Shard[];
  /** Written by a newer agent: kept as they are. */
  readonly unknownVersion: readonly Unusable[];
  /** What was there cannot be told any more. */
  readonly corrupt: readonly Unusable[];
}

const nodeSchema = z.object({
  version: z.number(),
  highest_revision: z.object({ term: z.number(), sequence: z.number() }),
});

/** Folders of shards whose state was corrupt begin so. Their logs may be large. */
const ASIDE = "corrupt-";
const ASIDE_MAX = 8;

/** Says, in a process's folder, which one of the shard it is. */
const PROCESS_FILE = "process";

export class ShardStore {
  readonly #root: string;

  constructor(stateDirectory: string) {
    this.#root = stateDirectory;
  }

  /** HOME of the engines. */
  get home(): string {
    return join(this.#root, "home");
  }

  /** Makes the folders. Throws `system` when the state directory cannot be written. */
  async open(): Promise<void> {
    try {
      for (const folder of [this.#shards, this.home]) {
        await Deno.mkdir(folder, { recursive: true, mode: 0o700 });
      }
    } catch (error) {
      throw new HeddleError(
        "system",
        `Cannot use the state directory ${this.#root}: ${errorText(error)}`,
        { cause: error },
      );
    }
  }

  async readHighest(): Promise<Revision> {
    const text = await readTextIfExists(join(this.#root, "node.json"));
    if (text === undefined) return NO_REVISION;
    try {
      return nodeSchema.parse(JSON.parse(text)).highest_revision;
    } catch {
      // Then the shards' own revisions are the fence.
      return NO_REVISION;
    }
  }

  async writeHighest(highest: Revision): Promise<void> {
    const node: z.input<typeof nodeSchema> = { version: 1, highest_revision: { ...highest } };
    await writeFileAtomic(join(this.#root, "node.json"), `${JSON.stringify(node)}\n`);
  }

  /** Every shard there is a folder of. Never throws for what a folder holds. */
  async load(): Promise<Loaded> {
    const shards: Shard[] = [];
    const unknownVersion: Unusable[] = [];
    const corrupt: Unusable[] = [];
    for await (const entry of Deno.readDir(this.#shards)) {
      if (!entry.isDirectory || !entry.name.startsWith("s-")) continue;
      const shardId = decodeId(entry.name);
      const directory = join(this.#shards, entry.name);
      const text = await readTextIfExists(join(directory, "state.json"));
      const decoded = decodeDocument(text ?? "", decodeSpec);
      if (decoded.kind === "shard" && decoded.shard.spec.shardId === shardId) {
        shards.push(decoded.shard);
      } else if (decoded.kind === "unknown_version") {
        const why = `version ${decoded.version} is newer than this agent`;
        unknownVersion.push({ shardId, directory, why, spec: decoded.spec });
      } else {
        const why = decoded.kind === "corrupt" ? decoded.why : "it is of another shard";
        corrupt.push({ shardId, directory, why, spec: undefined });
      }
    }
    return { shards, unknownVersion, corrupt };
  }

  /**
   * Puts a folder that cannot be used out of the way, for somebody to look at, and returns where it
   * is then. Of those, the last few are kept.
   */
  async setAside({ directory }: Pick<Unusable, "directory">): Promise<string> {
    const before = (await Array.fromAsync(Deno.readDir(this.#shards)))
      .map(({ name }) => name).filter((name) => name.startsWith(ASIDE)).sort();
    for (const old of before.slice(0, Math.max(0, before.length + 1 - ASIDE_MAX))) {
      await Deno.remove(join(this.#shards, old), { recursive: true });
    }
    // The time comes first, so that their names are in the order of their age.
    const stamp = new Date().toISOString().replaceAll(/[-:.]/g, "");
    const aside = join(this.#shards, `${ASIDE}${stamp}-${basename(directory)}`);
    await Deno.rename(directory, aside);
    return aside;
  }

  async save(shard: Shard): Promise<void> {
    const folder = this.folder(shard.spec.shardId);
    await Deno.mkdir(folder, { recursive: true, mode: 0o700 });
    await writeFileAtomic(join(folder, "state.json"), encodeDocument(shard, encodeSpec));
  }

  /** Forgets a shard, with the logs of its processes. */
  async remove(shardId: string): Promise<void> {
    await Deno.remove(this.folder(shardId), { recursive: true }).catch(ignoreMissing);
  }

  /** Makes the folder of one process; `position` counts the processes of the shard from 0. */
  async makeRun(
    shardId: string,
    process: { readonly handle: string; readonly name: string; readonly position: number },
  ): Promise<string> {
    const { handle, name, position } = process;
    const directory = this.run(shardId, handle);
    await Deno.mkdir(directory, { recursive: true, mode: 0o700 });
    await Deno.writeTextFile(join(directory, PROCESS_FILE), `${position} ${name}\n`, {
      mode: 0o600,
    });
    return directory;
  }

  run(shardId: string, handle: string): string {
    return join(this.folder(shardId), `run-${handle}`);
  }

  /** Folders of the shard's processes, also of earlier attempts, the server's last. */
  async runs(shardId: string): Promise<readonly string[]> {
    return (await this.processes(shardId)).map(({ directory }) => directory);
  }

  /** The same with the processes' names; one whose name is unknown has "". */
  async processes(
    shardId: string,
  ): Promise<readonly { readonly directory: string; readonly name: string }[]> {
    const folder = this.folder(shardId);
    const found: { directory: string; name: string; position: number }[] = [];
    try {
      for await (const entry of Deno.readDir(folder)) {
        if (!entry.name.startsWith("run-")) continue;
        const directory = join(folder, entry.name);
        const text = await readTextIfExists(join(directory, PROCESS_FILE)) ?? "";
        const [, position = "0", name = ""] = /^(\d{1,4}) (.*)/.exec(text) ?? [];
        found.push({ directory, name, position: Number(position) });
      }
    } catch (error) {
      ignoreMissing(error);
    }
    return found.sort((a, b) => a.position - b.position);
  }

  folder(shardId: string): string {
    return join(this.#shards, encodeId(shardId));
  }

  get #shards(): string {
    return join(this.#root, "shards");
  }
}

// Whatever control calls a shard, its folder is one plain name below ours.
function encodeId(shardId: string): string {
  return `s-${encodeURIComponent(shardId)}`;
}

function decodeId(folder: string): string {
  try {
    return decodeURIComponent(folder.slice(2));
  } catch {
    return folder.slice(2);
  }
}

function encodeSpec(spec: ShardSpec): JsonValue {
  return toJson(ShardSpecSchema, specMessage(spec));
}

function decodeSpec(json: unknown): ShardSpec {
  return fromJson(ShardSpecSchema, z.json().parse(json), { ignoreUnknownFields: true });
}

function ignoreMissing(error: unknown): void {
  if (!(error instanceof Deno.errors.NotFound)) throw error;
}
