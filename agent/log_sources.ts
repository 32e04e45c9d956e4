/** What can be read of this node's logs from afar: the agent's own, and each shard's. */
import { delay } from "@heddle/common/task";
import { errorText } from "@heddle/proto/error";
import { redactLine, secretsOf } from "./core/redact_line.ts";
import { ended, handlesOf, type Shard } from "./core/shard/shard.ts";
import type { Launcher } from "./edge/launcher/launcher.ts";
import { type Follow, followTogether } from "./edge/log/follow_together.ts";
import { followLines, tailLines } from "./edge/log/log_file.ts";
import { errorsFile } from "./edge/log/log_watch.ts";
import type { OwnLog } from "./edge/log/own_log.ts";
import type { ShardStore } from "./edge/shard_store.ts";

/** Lines of one chunk: many small messages and one huge one are both slow. */
const CHUNK_LINES_MAX = 200;
const TAIL_LINES_MAX = 10_000;
/** Processes of a shard that are followed at once, the server among them; of others the tail is sent. */
const FOLLOWED_MAX = 16;
/** How soon the log of a process that starts later is there for who follows its shard. */
const ARRIVAL_POLL_MS = 500;
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
  if (request.follow) return yield* followShard(options, request.source, { count, signal });
  for (const each of await logsOf(options, request.source)) {
    yield shown(options, request.source, each, await tailLines(each.file, count));
  }
}

/**
 * All processes of a shard, those too that are started while it is followed, to its end: until then a
 * shard that has none yet is waited for. One that has ended is shown and no more.
 */
async function* followShard(
  options: LogSourcesOptions,
  shardId: string,
  { count, signal }: { readonly count: number; readonly signal: AbortSignal },
): AsyncGenerator<string[]> {
  // An unknown name is refused before anything is waited for.
  await logsOf(options, shardId);
  const isOver = () => {
    const shard = options.find(shardId);
    return shard === undefined || ended(shard.state);
  };
  /** Files of those that are there, and those of them that are followed. */
  let present: ReadonlySet<string> = new Set();
  let followed: ReadonlySet<string> = new Set();
  const follow = (each: ProcessLog, lines: number): Follow<string[]> =>
    async function* (stop) {
      const over = () => isOver() || !present.has(each.file);
      for await (const batch of followLines(each.file, lines, stop, over)) {
        yield shown(options, shardId, each, batch);
      }
    };
  const tail = (each: ProcessLog, lines: number): Follow<string[]> =>
    async function* () {
      yield shown(options, shardId, each, await tailLines(each.file, lines));
    };
  yield* followTogether(async function* (stop) {
    // Of what is started later nothing was seen, so it is shown from its start.
    for (let lines = count; !stop.aborted; lines = TAIL_LINES_MAX) {
      const over = isOver();
      const logs = await logsIn(options, shardId);
      const fresh = logs.filter(({ file }) => !present.has(file));
      present = new Set(logs.map(({ file }) => file));
      const still = logs.filter(({ file }) => followed.has(file));
      const room = Math.max(0, FOLLOWED_MAX - still.length);
      const chosen = fresh.slice(Math.max(0, fresh.length - room));
      followed = new Set([...still, ...chosen].map(({ file }) => file));
      const follows = fresh.map((each) =>
        chosen.includes(each) ? follow(each, lines) : tail(each, lines)
      );
      if (follows.length > 0) yield follows;
      if (over) return;
      await delay(ARRIVAL_POLL_MS, stop);
    }
  }, signal);
}

function shown(
  { find }: LogSourcesOptions,
  shardId: string,
  { mark }: ProcessLog,
  lines: readonly string[],
): string[] {
  const shard = find(shardId);
  const secrets = shard === undefined
    ? []
    : secretsOf({ apiKey: shard.apiKey, env: shard.spec.env });
  return lines.map((line) => mark(redactLine(line, secrets)));
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

// The server comes last: its tail is what a reader sees last. Throws when there is no such shard.
async function logsOf(
  options: LogSourcesOptions,
  shardId: string,
): Promise<readonly ProcessLog[]> {
  const logs = await logsIn(options, shardId);
  if (options.find(shardId) === undefined && logs.length === 0) {
    const known = listed(options).map((line) => line.split("\t")[0]);
    throw new Error(`This node has no log of "${shardId}"; it has: ${known.join(", ")}`);
  }
  return logs;
}

async function logsIn(
  { find, store, launcher }: LogSourcesOptions,
  shardId: string,
): Promise<readonly ProcessLog[]> {
  const shard = find(shardId);
  const processes = await store.processes(shardId);
  // Of a shard that is being started not all are there yet.
  const several = processes.length > 1 ||
    (shard !== undefined && handlesOf(shard.state).length > 1);
  return processes.map(({ directory, name }) => ({
    file: launcher.logFile(directory),
    errors: errorsFile(directory),
    mark: (line) => several && name !== "" ? `[${name}] ${line}` : line,
  }));
}
