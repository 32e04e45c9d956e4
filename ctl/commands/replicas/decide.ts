/** `ctl replicas restart` and `stop`: an operator's decisions about one replica. */
import { buildCommand } from "@stricli/core";
import { confirm } from "../../io.ts";
import { CALL_TIMEOUT_MS } from "../../client.ts";
import {
  call,
  COMMON_FLAGS,
  type CtlContext,
  REASON_FLAG,
  type ReasonFlags,
  type SureFlags,
  YES_FLAG,
} from "../../command.ts";

interface ReplicaFlags extends SureFlags, ReasonFlags {}

interface StopFlags extends ReplicaFlags {
  readonly now: boolean;
}

const FLAGS = { ...COMMON_FLAGS, ...REASON_FLAG, ...YES_FLAG } as const;

const REPLICA_PARAMETER = {
  kind: "tuple",
  parameters: [{ parse: String, brief: "Id of the replica", placeholder: "replica" }],
} as const;

export const restart = buildCommand({
  docs: {
    brief: "Replace one replica with a new one of the same model",
    fullDescription: "The new one is ready before the old one drains, where there is room; else " +
      "the old one makes room. It is kept while a new one does not start.",
  },
  parameters: { flags: FLAGS, positional: REPLICA_PARAMETER },
  async func(this: CtlContext, flags: ReplicaFlags, replicaId: string) {
    await confirm(this, flags, `Replace replica ${replicaId}? Its engine is drained and stopped.`);
    const request = { replicaId, reason: flags.reason ?? "" };
    await call(
      this,
      flags,
      (client) => client.restartReplica(request, { timeoutMs: CALL_TIMEOUT_MS }),
    );
    this.io.out(`${replicaId} is being replaced; watch it with: heddle replicas\n`);
  },
});

export const stop = buildCommand({
  docs: {
    brief: "Drain and stop one replica; another is started if as many are wanted",
    fullDescription:
      "To have fewer of a model: heddle models scale. To have none started in its place: " +
      "heddle models pause first.",
  },
  parameters: {
    flags: {
      ...FLAGS,
      now: { kind: "boolean", default: false, brief: "At once; requests that it has are cut" },
    },
    positional: REPLICA_PARAMETER,
  },
  async func(this: CtlContext, flags: StopFlags, replicaId: string) {
    const cost = flags.now ? "Requests that it has are cut." : "Its engine is drained first.";
    await confirm(this, flags, `Stop replica ${replicaId}? ${cost}`);
    const request = { replicaId, reason: flags.reason ?? "", atOnce: flags.now };
    await call(
      this,
      flags,
      (client) => client.stopReplica(request, { timeoutMs: CALL_TIMEOUT_MS }),
    );
    this.io.out(
      `${replicaId} is being ${
        flags.now ? "stopped" : "drained"
      }; watch it with: heddle replicas\n`,
    );
  },
});
