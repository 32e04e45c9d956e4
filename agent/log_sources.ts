/** What can be read of this node's logs from afar: the agent's own, and each shard's. */
import { errorText } from "@heddle/proto/error";
import { redactLine, secretsOf } from "./core/redact_line.ts";
import type { Shard } from "./core/shard/shard.ts";
import type { Launcher } from "./edge/launcher/launcher.ts";
import { followLines, tailLines } from "./edge/log/log_file.ts";
import type { OwnLog } from "./edge/log/own_log.ts";
import type { ShardStore } from "./edge/shard_store.ts";

/** Lines of one chunk: many small messages and one huge one are both slow. */
const CHUNK_LINES_MAX = 200;
const TAIL_LINES_MAX = 10_000;

export interface LogRequest {
  /** A shard id, or "agent". */
  readonly source: string;
  readonly tailLines: number;
  readonly follow: boolean;
}

/** Takes lines; false: nobody reads them any more. Resolves when there is room for more. */
export type SendLines = (
  chunk: { lines: string[]; end: boolean; error: string },
) => Promise<boolean>;

export interface LogSourcesOptions {
  readonly own: OwnLog;
  readonly store: ShardStore;
  readonly launcher: Launcher;
  readonly find: (shardId: string) => Shard | undefined;
  readonly sources: () => readonly string[];
}

/** Sends what `request` asks for, and a last chunk with `end` unless nobody reads any more. */
export async function sendLog(
  options: LogSourcesOptions,
  request: LogRequest,
  send: SendLines,
  signal: AbortSignal,
): Promise<void> {
  try {
    for await (const lines of linesOf(options, request, signal)) {
      for (let at = 0; at < lines.length; at += CHUNK_LINES_MAX) {
        const chunk = lines.slice(at, at + CHUNK_LINES_MAX);
        if (!await send({ lines: chunk, end: false, error: "" })) return;
      }
    }
    await send({ lines: [], end: true, error: "" });
  } catch (error) {
    await send({ lines: [], end: true, error: errorText(error) });
  }
}

async function* linesOf(
  options: LogSourcesOptions,
  request: LogRequest,
  signal: AbortSignal,
): AsyncGenerator<string[]> {
  const count = Math.min(request.tailLines, TAIL_LINES_MAX);
  if (request.source === "agent") {
    if (!request.follow) return yield [...options.own.tail(count)];
    for await (const lines of options.own.follow(count, signal)) yield [...lines];
    return;
  }
  const files = await filesOf(options, request.source);
  const shard = options.find(request.source);
  const secrets = shard === undefined
    ? []
    : secretsOf({ apiKey: shard.apiKey, env: shard.spec.env });
  const hide = (lines: readonly string[]) => lines.map((line) => redactLine(line, secrets));
  for (const file of files.slice(0, -1)) yield hide(await tailLines(file, count));
  const last = files.at(-1);
  if (last === undefined) return;
  if (!request.follow) return yield hide(await tailLines(last, count));
  for await (const lines of followLines(last, count, signal)) yield hide(lines);
}

// The server's log comes last: it is the one that goes on.
async function filesOf(options: LogSourcesOptions, shardId: string): Promise<readonly string[]> {
  const shard = options.find(shardId);
  const runs = await options.store.runs(shardId);
  if (shard === undefined && runs.length === 0) {
    const known = ["agent", ...options.sources()].join(", ");
    throw new Error(`This node has no log of "${shardId}"; it has: ${known}`);
  }
  return runs.map((run) => options.launcher.logFile(run));
}
