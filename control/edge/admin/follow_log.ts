/**
 * A log as an operator reads it. One that is followed outlives what it comes from: a node that is
 * away is waited for, and a replica that has ended is followed by the one that takes its place.
 */
import { delay } from "@heddle/common/task";
import { HeddleError } from "@heddle/proto/error";
import type { ReadLogsRequest } from "@heddle/proto/gen/admin";
import type { EpochMs } from "../../core/ids.ts";
import type { Replica, RetireReason, World } from "../../core/world.ts";
import type { LogRequests } from "../log_requests.ts";
import { findLog, type FoundLog } from "./log_source.ts";

/** How soon who waits hears of a node that is back, or a replica that is new. */
const LOOK_MS = 500;

/** Nothing takes the place of a replica that goes for one of these. */
const FOR_GOOD: readonly RetireReason[] = ["model_removed", "operator_stop", "surplus"];

export interface LogReader {
  readonly world: () => World;
  readonly now: () => EpochMs;
  readonly logs: Pick<LogRequests, "read">;
}

/** Lines, and what they are shown under. */
export interface LabelledLines {
  readonly label: string;
  readonly lines: readonly string[];
}

/**
 * What the request asks for. With `follow` until `signal` aborts, or nothing more can come of it: what
 * happens to its source meanwhile is told as a line that begins with `--`. Throws as `findLog` and
 * `LogRequests.read` do.
 */
export async function* readFound(
  reader: LogReader,
  request: ReadLogsRequest,
  signal: AbortSignal,
): AsyncGenerator<LabelledLines> {
  const { source, follow } = request;
  let found = findLog(reader.world(), request);
  if (!follow) return yield* plainly(reader, found, signal);
  let replica = source.case === "replicaId" ? reader.world().replicas.get(source.value) : undefined;
  for (let resumed = false; !signal.aborted; resumed = true) {
    const away = yield* untilLost(reader, { found, resumed }, signal);
    const { label, node } = found;
    // Its end is told a moment after its last line. One that has ended is soon forgotten.
    if (!away && replica !== undefined) await delay(LOOK_MS, signal);
    if (replica !== undefined) replica = reader.world().replicas.get(replica.id) ?? replica;
    if (away) {
      yield says(label, `the connection to node "${node}" was lost; going on once it is back`);
      await nodeBack(reader, { node, replica }, signal);
      found = { ...found, tailLines: 0 };
      if (replica === undefined || reader.world().replicas.has(replica.id)) continue;
    }
    if (signal.aborted || replica === undefined) return;
    const why = whyEnded(replica);
    if (FOR_GOOD.some((reason) => reason === replica?.retiring?.reason)) {
      return yield says(label, `replica "${replica.id}" has ended: ${why}`);
    }
    yield says(
      label,
      `replica "${replica.id}" has ended: ${why}; waiting for what takes its place`,
    );
    replica = await successor(reader, replica, signal);
    if (replica === undefined) return;
    const value = replica.id;
    found = findLog(reader.world(), { ...request, source: { case: "replicaId", value } });
    yield says(found.label, `replica "${value}" takes its place, on node "${found.node}"`);
  }
}

async function* plainly(
  { logs }: LogReader,
  found: FoundLog,
  signal: AbortSignal,
): AsyncGenerator<LabelledLines> {
  for await (const lines of logs.read(found, signal)) yield { label: found.label, lines };
}

/** Returns true when its node went away; one that is away from the start throws. */
async function* untilLost(
  reader: LogReader,
  { found, resumed }: { readonly found: FoundLog; readonly resumed: boolean },
  signal: AbortSignal,
): AsyncGenerator<LabelledLines, boolean> {
  let read = resumed;
  try {
    for await (const lines of plainly(reader, found, signal)) {
      read = true;
      yield lines;
    }
    return false;
  } catch (error) {
    if (read && error instanceof HeddleError && error.code === "unavailable") return true;
    throw error;
  }
}

// A replica that is rebuilt elsewhere meanwhile is not waited for.
async function nodeBack(
  { world }: LogReader,
  { node, replica }: { readonly node: string; readonly replica: Replica | undefined },
  signal: AbortSignal,
): Promise<void> {
  do {
    await delay(LOOK_MS, signal);
    if (replica !== undefined && !world().replicas.has(replica.id)) return;
  } while (!signal.aborted && world().nodes.get(node)?.connected !== true);
}

/** The first replica of the same model since `ended` began to go, once its node knows its leader. */
async function successor(
  { world, now }: LogReader,
  ended: Replica,
  signal: AbortSignal,
): Promise<Replica | undefined> {
  const since = ended.retiring?.since ?? ended.failure?.at ?? ended.stopping?.since ?? now();
  while (!signal.aborted) {
    const { replicas, catalog } = world();
    const [next] = [...replicas.values()]
      .filter(({ id, model, createdAt, stopping, failure, shards }) =>
        id !== ended.id && model === ended.model && createdAt >= since &&
        stopping === undefined && failure === undefined &&
        shards.some(({ rank, status }) => rank === 0 && status !== undefined)
      )
      .sort((a, b) => a.createdAt - b.createdAt || (a.id < b.id ? -1 : 1));
    if (next !== undefined) return next;
    if (!catalog.catalog.models.some(({ name }) => name === ended.model)) return undefined;
    await delay(LOOK_MS, signal);
  }
  return undefined;
}

function whyEnded({ failure, retiring, stopping }: Replica): string {
  if (failure !== undefined) return `${failure.reason}, ${failure.message}`;
  return retiring?.reason ?? stopping?.reason ?? "its engine is gone";
}

function says(label: string, words: string): LabelledLines {
  return { label, lines: [`-- ${words} --`] };
}
