/** `ctl logs`: what a replica's engine, one shard, or a node's agent has written. */
import { buildCommand } from "@stricli/core";
import { CALL_TIMEOUT_MS } from "../client.ts";
import { call, COMMON_FLAGS, type CommonFlags, type CtlContext } from "../command.ts";
import { HeddleError } from "@heddle/proto/error";

interface LogFlags extends CommonFlags {
  readonly follow: boolean;
  readonly tail: number;
}

/** As many lines as fit on a tall terminal. */
const TAIL_LINES = 100;
const TAIL_LINES_MAX = 100_000;

export const logs = buildCommand({
  docs: { brief: "Show the log of a replica, a shard or a node's agent" },
  parameters: {
    flags: {
      ...COMMON_FLAGS,
      follow: { kind: "boolean", default: false, brief: "Go on until Ctrl-C" },
      tail: {
        kind: "parsed",
        parse: parseTail,
        default: String(TAIL_LINES),
        placeholder: "lines",
        brief: "How many of the last lines to begin with",
      },
    },
    aliases: { f: "follow" },
    positional: {
      kind: "tuple",
      parameters: [{ parse: String, brief: "Replica, shard or node", placeholder: "name" }],
    },
  },
  async func(this: CtlContext, flags: LogFlags, name: string) {
    await call(this, flags, async (client) => {
      const [{ replicas }, { nodes }] = await Promise.all([
        client.listReplicas({}, { timeoutMs: CALL_TIMEOUT_MS }),
        client.listNodes({}, { timeoutMs: CALL_TIMEOUT_MS }),
      ]);
      const source = replicas.some((replica) => replica.replicaId === name)
        ? { case: "replicaId" as const, value: name }
        : replicas.some((replica) => replica.shards.some((shard) => shard.shardId === name))
        ? { case: "shardId" as const, value: name }
        : nodes.some((node) => node.name === name)
        ? { case: "node" as const, value: name }
        : undefined;
      if (source === undefined) {
        throw new HeddleError(
          "not_found",
          `No replica, shard or node is named "${name}": see replicas and nodes`,
        );
      }
      const stream = client.readLogs(
        { source, tailLines: flags.tail, follow: flags.follow },
        flags.follow ? { signal: this.signal } : { timeoutMs: CALL_TIMEOUT_MS },
      );
      try {
        for await (const { lines } of stream) {
          this.io.out(lines.map((line) => `${harmless(line.text)}\n`).join(""));
        }
      } catch (error) {
        // Ctrl-C is how following ends.
        if (!this.signal.aborted) throw error;
      }
    });
  },
});

// An engine's output goes to the terminal of an operator: colours may pass, nothing else may.
// deno-lint-ignore no-control-regex
const HARMFUL = /\u001b(?!\[[\d;]*m)|[\u0000-\u0008\u000b-\u001a\u001c-\u001f\u007f-\u009f]/g;

function harmless(text: string): string {
  return text.replace(HARMFUL, "");
}

function parseTail(text: string): number {
  const lines = Number(text);
  if (!Number.isInteger(lines) || lines < 0 || lines > TAIL_LINES_MAX) {
    throw new HeddleError("invalid_input", `want a whole number from 0 to ${TAIL_LINES_MAX}`);
  }
  return lines;
}
