/** What can be read of this node's logs from afar: the agent's own, and each shard's. */
import { errorText } from "@heddle/proto/error";
import { redactLine, secretsOf } from "./core/redact_line.ts";
import type { Shard } from "./core/shard/shard.ts";
import type { Launcher } from "./edge/launcher/launcher.ts";
import { followTogether } from "./edge/log/follow_together.ts";
import { followLines, tailLines } from "./edge/log/log_file.ts";
import { errorsFile } from "./edge/log/log_watch.ts";
import type { OwnLog } from "./edge/log/own_log.ts";
import type { ShardStore } from "./edge/shard_store.ts";

/** Lines of one chunk: many small messages and one huge one are both slow. */
const CHUNK_LINES_MAX = 200;
const TAIL_LINES_MAX = 10_000;
/** Processes of a shard that are followed at once, the server among them; of others the tail is sent. */
const FOLLOWED_MAX = 16;
const ERRORS = ":errors";
const SOURCES = "sources";

export interface LogRequest {
  /**
   * "agent", a shard's id, that and ":errors" for the first errors of its processes, or "sources" for
   * a list of all these: a line each of name, tab, and what it is.
   */
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
  /** The shards whose logs are here. */
  readonly shards: () => readonly LoggedShard[];
}

export interface LoggedShard {
  readonly shardId: string;
  /** For a list: "vllm of llama-70b, ready". */
  readonly words: string;
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
  if (request.source === SOURCES) return yield [...listed(options)];
  if (request.source.endsWith(ERRORS)) {
    const logs = await logsOf(options, request.source.slice(0, -ERRORS.length));
    // They were written without secrets.
    for (const { errors, mark } of logs) yield (await tailLines(errors, count)).map(mark);
    return;
  }
  const logs = await logsOf(options, request.source);
  const shard = options.find(request.source);
  const secrets = shard === undefined
    ? []
    : secretsOf({ apiKey: shard.apiKey, env: shard.spec.env });
  const shown = ({ mark }: ProcessLog, lines: readonly string[]) =>
    lines.map((line) => mark(redactLine(line, secrets)));
  const followed = request.follow ? logs.slice(-FOLLOWED_MAX) : [];
  for (const each of logs.slice(0, logs.length - followed.length)) {
    yield shown(each, await tailLines(each.file, count));
  }
  yield* followTogether(
    followed.map((each) =>
      async function* (stop: AbortSignal) {
        for await (const lines of followLines(each.file, count, stop)) yield shown(each, lines);
      }
    ),
    signal,
  );
}

function listed({ shards }: LogSourcesOptions): readonly string[] {
  return [
    "agent\tthe agent's own log since it was started",
    ...shards().flatMap(({ shardId, words }) => [
      `${shardId}\t${words}`,
      `${shardId}${ERRORS}\tthe first errors of each of its processes`,
    ]),
  ];
}

interface ProcessLog {
  readonly file: string;
  readonly errors: string;
  /** Puts the process's name before a line, where a shard has several. */
  mark(line: string): string;
}

// The server comes last: its tail is what a reader sees last.
async function logsOf(
  options: LogSourcesOptions,
  shardId: string,
): Promise<readonly ProcessLog[]> {
  const shard = options.find(shardId);
  const processes = await options.store.processes(shardId);
  if (shard === undefined && processes.length === 0) {
    const known = listed(options).map((line) => line.split("\t")[0]);
    throw new Error(`This node has no log of "${shardId}"; it has: ${known.join(", ")}`);
  }
  return processes.map(({ directory, name }) => ({
    file: options.launcher.logFile(directory),
    errors: errorsFile(directory),
    mark: (line) => processes.length > 1 && name !== "" ? `[${name}] ${line}` : line,
  }));
}
