/** What is not well of what serves, and of what it needs: replicas, engines and weights. */
import type { NodeView, ReplicaView } from "@heddle/proto/gen/admin";
import type { NodeWeights } from "@heddle/proto/gen/weights";
import { decodeAttachedState } from "@heddle/proto/attached_state";
import { decodeInstallState } from "@heddle/proto/install_state";
import { decodeReplicaState } from "@heddle/proto/replica_state";
import { decodeWeightsState } from "@heddle/proto/weights_state";
import { installReason } from "../commands/nodes/installs.ts";
import type { Concern } from "./concern.ts";
import { degradation, degradedShards, suspectedShards, suspicion } from "./degradation.ts";
import { reasonText } from "./reason_text.ts";

/** All of them, what serves before what is to serve. */
export function servingConcerns(
  { replicas, nodes, weights }: {
    readonly replicas: readonly ReplicaView[];
    readonly nodes: readonly NodeView[];
    readonly weights: readonly NodeWeights[];
  },
): readonly Concern[] {
  return [
    ...replicas.flatMap((replica) =>
      replica.attached === undefined ? ownConcern(replica) : attachedConcern(replica)
    ),
    ...nodes.flatMap(installConcerns),
    ...weights.flatMap(weightsConcern),
  ];
}

/** A replica that counts as ready although a shard of it is not well, or may not be. */
function ownConcern(replica: ReplicaView): readonly Concern[] {
  const what = degradation(replica) || suspicion(replica);
  if (what === "") return [];
  const { replicaId } = replica;
  const [shard] = [...degradedShards(replica), ...suspectedShards(replica)];
  const log = shard?.shardId ?? replicaId;
  return [{
    subject: `replica ${replicaId}`,
    what,
    next: `heddle logs ${log}; where it stays: heddle replicas restart ${replicaId}`,
  }];
}

/** An attached engine that is degraded, gone, or that no router has. Heddle does not restart it. */
function attachedConcern(replica: ReplicaView): readonly Concern[] {
  const { attached, reason, replicaId } = replica;
  if (attached === undefined) return [];
  const subject = `attached engine ${replicaId}`;
  const state = decodeAttachedState(attached.state);
  const why = degradation(replica);
  if (state === "lost" || decodeReplicaState(replica.state) === "failed") {
    return [{
      subject,
      what: `is lost${reason === "" ? "" : `: ${reason}`}`,
      next: "look at its box, and at the log of heddle-attach there",
    }];
  }
  if (state === "degraded") {
    return [{
      subject,
      what: `is degraded: ${why}`,
      next: `look at the engine on its box; to send nothing there: heddle drain ${replicaId}/0`,
    }];
  }
  // Most often routers do not have it, and the reason says what is missing.
  return state !== "serving" || why === "" ? [] : [{
    subject,
    what: `serves, and not as it should: ${why}`,
    next: "docs/attach.md says what an engine's box and the catalog must say",
  }];
}

function installConcerns({ name, inventory }: NodeView): readonly Concern[] {
  return (inventory?.installs?.installs ?? [])
    .filter(({ wanted, state }) => wanted && decodeInstallState(state) === "failed")
    .map((install) => ({
      subject: `node ${name} engine ${install.name} ${install.version}`,
      what: `could not be installed: ${installReason(install)}`,
      next: `heddle engines shows how it goes on; heddle logs ${name} agent has more`,
    }));
}

function weightsConcern({ node, weights, models }: NodeWeights): readonly Concern[] {
  if (weights === undefined || decodeWeightsState(weights.state) !== "failed") return [];
  const why = reasonText(weights.reason, weights.message);
  const [model] = models;
  const remove = weights.folder === "" ? "" : `heddle weights remove ${node} ${weights.folder}`;
  return [{
    subject: `node ${node} weights ${weights.want?.source ?? weights.folder}`,
    what: `could not be fetched${why === "" ? "" : `: ${why}`}`,
    next: model === undefined
      ? remove || `heddle logs ${node} agent has more`
      : `once the cause is gone: heddle weights prefetch ${model} --nodes ${node}`,
  }];
}
