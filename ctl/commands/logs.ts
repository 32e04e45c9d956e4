/** `ctl logs`: what a replica's engine, one shard, or anything on a node has written. */
import { buildCommand } from "@stricli/core";
import { CALL_TIMEOUT_MS } from "../client.ts";
import {
  call,
  COMMON_FLAGS,
  type CommonFlags,
  type CtlContext,
  FORM_ALIASES,
  FORM_FLAGS,
  type FormFlags,
  outputOf,
} from "../command.ts";
import type { ReadLogsRequest, ReplicaView } from "@heddle/proto/gen/admin";
import { type Listing, writeListing } from "../table.ts";
import { HeddleError } from "@heddle/proto/error";

interface LogFlags extends CommonFlags, FormFlags {
  readonly follow: boolean;
  readonly tail: number;
}

/** As many lines as fit on a tall terminal. */
const TAIL_LINES = 100;
/** Control gives no more history to one reader. */
const TAIL_LINES_MAX = 10_000;
/** What a node is asked for when nobody says what to read there: a line each of name, tab, words. */
const SOURCES = "sources";

export const logs = buildCommand({
  docs: {
    brief: "Show the log of a replica or a shard, or what there is to read on a node",
    fullDescription:
      "Of a replica the log of its leader. Of a node alone the names of its logs are " +
      "listed, in the form that -o says; give one of them to read it, such as: logs NODE agent. " +
      "A log itself has one form: its lines",
  },
  parameters: {
    flags: {
      ...COMMON_FLAGS,
      ...FORM_FLAGS,
      follow: { kind: "boolean", default: false, brief: "Go on until Ctrl-C" },
      tail: {
        kind: "parsed",
        parse: parseTail,
        default: String(TAIL_LINES),
        placeholder: "lines",
        brief: "How many of the last lines to begin with",
      },
    },
    aliases: { ...FORM_ALIASES, f: "follow" },
    positional: {
      kind: "tuple",
      parameters: [
        { parse: String, brief: "Replica, shard or node", placeholder: "name" },
        {
          parse: String,
          brief: "Of a node: which of its logs",
          placeholder: "source",
          optional: true,
        },
      ],
    },
  },
  async func(this: CtlContext, flags: LogFlags, name: string, nodeSource?: string) {
    await call(this, flags, async (client) => {
      const [{ replicas }, { nodes }] = await Promise.all([
        client.listReplicas({}, { timeoutMs: CALL_TIMEOUT_MS }),
        client.listNodes({}, { timeoutMs: CALL_TIMEOUT_MS }),
      ]);
      const isNode = nodes.some((node) => node.name === name);
      const source = nodeSource !== undefined && isNode
        ? { case: "node" as const, value: name }
        : sourceOf(name, replicas, isNode);
      if (nodeSource !== undefined && source.case !== "node") {
        throw new HeddleError(
          "invalid_input",
          `Cannot read "${nodeSource}" of "${name}": it is no node; leave the second name out`,
        );
      }
      const lists = source.case === "node" && nodeSource === undefined;
      if (!lists && (flags.json || flags.output !== undefined)) {
        throw new HeddleError(
          "invalid_input",
          "A log has no other form than its lines: leave -o out, or list a node's logs with it",
        );
      }
      const stream = client.readLogs(
        {
          source,
          nodeSource: nodeSource ?? (lists ? SOURCES : ""),
          tailLines: flags.tail,
          follow: flags.follow && !lists,
        },
        flags.follow && !lists ? { signal: this.signal } : { timeoutMs: CALL_TIMEOUT_MS },
      );
      const sources: LogSource[] = [];
      try {
        for await (const { lines } of stream) {
          if (lists) sources.push(...lines.map(({ text }) => readSource(text)));
          else this.io.out(lines.map((line) => `${harmless(line.text)}\n`).join(""));
        }
        if (lists) writeListing(this.io, sourceListing(name, sources), outputOf(flags));
      } catch (error) {
        // Ctrl-C is how following ends.
        if (!this.signal.aborted) throw error;
      }
    });
  },
});

interface LogSource {
  readonly name: string;
  readonly words: string;
}

/** A line of a node's list: name, tab, words. */
function readSource(line: string): LogSource {
  const [name = "", ...words] = line.split("\t");
  return { name, words: words.join(" ") };
}

function sourceListing(node: string, sources: readonly LogSource[]): Listing<LogSource> {
  return {
    rows: sources,
    empty: `Nothing on ${node} has a log. What it runs: heddle replicas`,
    record: ({ name, words }) => ({ name, words }),
    fields: ["name", "words"],
    columns: [
      { title: "SOURCE", cell: ({ name }) => name },
      { title: "WHAT", cell: ({ words }) => words },
    ],
  };
}

function sourceOf(
  name: string,
  replicas: readonly ReplicaView[],
  isNode: boolean,
): Exclude<ReadLogsRequest["source"], { case: undefined }> {
  if (replicas.some((replica) => replica.replicaId === name)) {
    return { case: "replicaId", value: name };
  }
  if (replicas.some((replica) => replica.shards.some((shard) => shard.shardId === name))) {
    return { case: "shardId", value: name };
  }
  if (isNode) return { case: "node", value: name };
  throw new HeddleError(
    "not_found",
    `No replica, shard or node is named "${name}": see heddle replicas and heddle nodes`,
  );
}

// An engine's output goes to the terminal of an operator: colours may pass, nothing else may.
// deno-lint-ignore no-control-regex
const HARMFUL = /\u001b(?!\[[\d;]*m)|[\u0000-\u0008\u000b-\u001a\u001c-\u001f\u007f-\u009f]/g;

function harmless(text: string): string {
  return text.replace(HARMFUL, "");
}

function parseTail(text: string): number {
  const lines = Number(text);
  if (!Number.isInteger(lines) || lines < 0 || lines > TAIL_LINES_MAX) {
    throw new SyntaxError(`want a whole number from 0 to ${TAIL_LINES_MAX}`);
  }
  return lines;
}
