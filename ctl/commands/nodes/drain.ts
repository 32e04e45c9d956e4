/** `ctl drain`: says what it would come to, asks, and then moves what runs on a node elsewhere. */
import { buildCommand } from "@stricli/core";
import { Code, ConnectError } from "@connectrpc/connect";
import type { CatalogPlan, ReplicaView } from "@heddle/proto/gen/admin";
import { decodeReplicaState } from "@heddle/proto/replica_state";
import { type AdminClient, CALL_TIMEOUT_MS } from "../../client.ts";
import {
  call,
  type CtlContext,
  type ReasonFlags,
  type SureFlags,
  YES_FLAG,
} from "../../command.ts";
import { confirm } from "../../io.ts";
import { visible } from "../../table.ts";
import { formatSteps } from "../catalog/plan.ts";
import { DECIDE_FLAGS, decided, NODE_PARAMETER } from "./decide.ts";

/** Looking ahead on a large fleet takes a while. */
const FORESEE_TIMEOUT_MS = 120_000;

interface DrainFlags extends SureFlags, ReasonFlags {}

export const drain = buildCommand({
  docs: {
    brief: "Move what runs on a node elsewhere, then stop it there",
    fullDescription: "Says first where each replica would go, and which model would be left " +
      "without any, and asks. --yes does not look ahead.",
  },
  parameters: { flags: { ...DECIDE_FLAGS, ...YES_FLAG }, positional: NODE_PARAMETER },
  async func(this: CtlContext, flags: DrainFlags, node: string) {
    if (!flags.yes) {
      const foreseen = await call(this, flags, (client) => foresee(client, node));
      this.io.err(formatForeseen(foreseen));
      await confirm(this, flags, questionOf(node, foreseen));
    }
    const answer = await call(
      this,
      flags,
      (client) =>
        client.drain({ node, reason: flags.reason ?? "" }, { timeoutMs: CALL_TIMEOUT_MS }),
    );
    this.io.out(`${decided(answer.node, node)}; watch it with: heddle nodes\n`);
  },
});

/** What a drain would come to. */
interface Foreseen {
  /** Undefined where control cannot look ahead; `unknown` says why. */
  readonly plan: CatalogPlan | undefined;
  readonly unknown: string;
  /** Models that would be left without a replica, by name. */
  readonly without: readonly string[];
}

async function foresee(client: AdminClient, node: string): Promise<Foreseen> {
  const { replicas } = await client.listReplicas({}, { timeoutMs: CALL_TIMEOUT_MS });
  try {
    const { plan } = await client.foreseeDrain({ node }, { timeoutMs: FORESEE_TIMEOUT_MS });
    return { plan, unknown: "", without: leftWithout(replicas, node, plan) };
  } catch (error) {
    const { code, rawMessage } = ConnectError.from(error);
    // An older control cannot, and one that has just begun to lead not yet.
    if (code !== Code.Unimplemented && code !== Code.FailedPrecondition) throw error;
    const unknown = code === Code.Unimplemented ? "control is older than this heddle" : rawMessage;
    return { plan: undefined, unknown, without: leftWithout(replicas, node, undefined) };
  }
}

/**
 * The models that would be left without a replica. What runs elsewhere counts, and so does what
 * control would start; without a plan nothing would be.
 */
function leftWithout(
  replicas: readonly Pick<ReplicaView, "model" | "state" | "shards" | "replicaId">[],
  node: string,
  plan: CatalogPlan | undefined,
): readonly string[] {
  const serving = replicas.filter(({ state }) => decodeReplicaState(state) === "ready");
  const stops = new Set(plan?.stops.map(({ replicaId }) => replicaId));
  const leaves = ({ shards, replicaId }: Pick<ReplicaView, "shards" | "replicaId">) =>
    stops.has(replicaId) || shards.some((shard) => shard.node === node);
  const stays = new Set([
    ...serving.filter((replica) => !leaves(replica)).map(({ model }) => model),
    ...plan?.starts.map(({ model }) => model) ?? [],
  ]);
  const gone = serving.filter(leaves).map(({ model }) => model);
  return [...new Set(gone)].filter((model) => !stays.has(model)).sort();
}

/** What stands above the question. */
function formatForeseen({ plan, unknown }: Foreseen): string {
  if (plan === undefined) return `What it would come to is not known: ${visible(unknown)}\n`;
  const steps = formatSteps(plan);
  return steps === "" ? "Nothing runs there.\n" : steps;
}

/** The question, with the models that nobody could ask any more. */
function questionOf(node: string, { plan, without }: Foreseen): string {
  const goes = plan === undefined ? "may go" : without.length === 1 ? "goes" : "go";
  const none = without.length === 0
    ? ""
    : `${without.map(visible).join(", ")} ${goes} to 0 replicas, until there is room elsewhere. `;
  return `Drain node ${node}? ${none}What runs there stops, also where it finds no other place.`;
}
