/** Commands of the loop as messages to agents. */
import { encodeRevision } from "@heddle/proto/revision";
import { ShardSpecSchema } from "@heddle/proto/gen/types";
import type { ShardCommand } from "../core/plan.ts";
import { encodePlain } from "./encode_plain.ts";
import type { NodeMessage } from "./node_streams.ts";

/** The message that carries a command to its node. */
export function encodeCommand(command: ShardCommand): NodeMessage {
  const revision = encodeRevision(command.revision);
  switch (command.kind) {
    case "start_shard": {
      const spec = encodePlain(ShardSpecSchema, command.spec);
      return { case: "startShard", value: { revision, spec } };
    }
    case "stop_shard":
      return {
        case: "stopShard",
        value: {
          revision,
          shardId: command.shard,
          reason: command.reason,
          graceMs: Math.max(0, Math.round(command.graceMs)),
        },
      };
  }
}
