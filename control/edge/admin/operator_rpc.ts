/** Operators' decisions about nodes, models and replicas: who made them is checked at the door. */
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { HeddleError } from "@heddle/proto/error";
import type { AdminService } from "@heddle/proto/gen/admin";
import type { OperatorEvent } from "../../core/event.ts";
import type { Audit } from "../../core/store_record.ts";
import { viewEveryNode, viewEveryReplica } from "../../core/views/attached.ts";
import { viewDecisions } from "../../core/views/decisions.ts";
import { viewModels } from "../../core/views/models.ts";
import type { World } from "../../core/world.ts";
import { foreseeDecision } from "../foresee.ts";
import { encodePlan } from "./catalogs.ts";
import { checkLabels } from "./check_labels.ts";
import {
  encodeAudit,
  encodeDecision,
  encodeModel,
  encodeNode,
  encodeReplica,
} from "./encode_views.ts";
import { decidedModelName, findNamed } from "./known_name.ts";

/** Longest reason of a decision: it stands in tables. */
const REASON_CHARS_MAX = 500;

/** Far beyond what one model can need, and a typing error stays harmless. */
const REPLICAS_MAX = 1_000;

const AUDIT_DEFAULT = 100;
const AUDIT_MAX = 1_000;

export interface OperatorRpcOptions {
  /** The name of who calls; throws for a caller who is no operator. */
  readonly by: (context: HandlerContext) => string;
  /** The single writer. `now` is its clock. Throws, saying who does, while this control does not lead. */
  readonly loop: {
    dispatch(event: OperatorEvent): Promise<void>;
    world(): World;
    now(): number;
  };
  /** The newest so many audit records, newest first. */
  readonly audit: (limit: number) => Promise<readonly Audit[]>;
}

type Handlers = Pick<
  ServiceImpl<typeof AdminService>,
  | "cordon"
  | "uncordon"
  | "drain"
  | "foreseeDrain"
  | "labelNode"
  | "forgetNode"
  | "pauseModel"
  | "resumeModel"
  | "scaleModel"
  | "clearScale"
  | "retryModel"
  | "restartReplica"
  | "stopReplica"
  | "listDecisions"
  | "listAudit"
>;

/** The handlers of AdminService with which operators decide, and see what was decided. */
export function operatorRpc(options: OperatorRpcOptions): Handlers {
  return { ...nodeRpc(options), ...modelRpc(options), ...replicaRpc(options), ...listRpc(options) };
}

function nodeRpc({ by, loop }: OperatorRpcOptions) {
  const find = (action: string, name: string) =>
    findNamed(
      { action, noun: "node", name },
      viewEveryNode(loop.world(), loop.now()),
      (it) => it.name,
    );
  const decide = async (event: Extract<OperatorEvent, { readonly node: string }>) => {
    find(event.kind, event.node);
    await decideChecked(loop, event, `node "${event.node}"`);
    return { node: encodeNode(find(event.kind, event.node)) };
  };
  return {
    cordon: ({ node, reason }, context) =>
      decide({ kind: "cordon", node, by: by(context), reason }),
    uncordon: ({ node }, context) => decide({ kind: "uncordon", node, by: by(context) }),
    drain: ({ node, reason }, context) => decide({ kind: "drain", node, by: by(context), reason }),
    async foreseeDrain({ node }, context) {
      const event = { kind: "drain", node, by: by(context), reason: "" } as const;
      find("foresee a drain of", node);
      const plan = await foreseeDecision(loop.world(), event, loop.now());
      return { plan: encodePlan(plan, {}) };
    },
    labelNode({ node, set, remove }, context) {
      const name = by(context);
      checkLabels(find("label", node), set, remove);
      return decide({ kind: "label", node, set, remove, by: name });
    },
    async forgetNode({ node }, context) {
      const name = by(context);
      const { state, replicaIds, attached } = find("forget", node);
      if (attached !== undefined) throw notOurs("forget", node, "it is forgotten by itself");
      if (state !== "lost") throw notLost(node, state);
      await loop.dispatch({ kind: "forget_node", node, by: name });
      return { replicaIds: [...replicaIds] };
    },
  } satisfies Partial<Handlers>;
}

function modelRpc({ by, loop }: OperatorRpcOptions) {
  const decide = async (event: Extract<OperatorEvent, { readonly model: string }>) => {
    await decideChecked(loop, event, `model "${event.model}"`);
    const view = viewModels(loop.world(), loop.now()).find(({ name }) => name === event.model);
    return view === undefined ? {} : { model: encodeModel(view) };
  };
  const find = (action: string, model: string) => decidedModelName(loop.world(), action, model);
  return {
    pauseModel: ({ model, reason }, context) =>
      decide({ kind: "pause", by: by(context), model: find("pause", model), reason }),
    resumeModel: ({ model }, context) =>
      decide({ kind: "resume", by: by(context), model: find("resume", model) }),
    scaleModel({ model, replicas, reason }, context) {
      const name = by(context);
      if (replicas > REPLICAS_MAX) throw tooMany(model, replicas);
      return decide({ kind: "scale", by: name, model: find("scale", model), replicas, reason });
    },
    clearScale: ({ model }, context) =>
      decide({ kind: "clear_scale", by: by(context), model: find("clear the scale of", model) }),
    retryModel: ({ model }, context) =>
      decide({ kind: "retry", by: by(context), model: find("retry", model) }),
  } satisfies Partial<Handlers>;
}

function replicaRpc({ by, loop }: OperatorRpcOptions) {
  const find = (action: string, name: string) =>
    findNamed(
      { action, noun: "replica", name },
      viewEveryReplica(loop.world(), loop.now()),
      (it) => it.replicaId,
    );
  const decide = async (event: Extract<OperatorEvent, { readonly replica: string }>) => {
    const { state, attached } = find(event.kind, event.replica);
    if (attached !== undefined) {
      const instead = `take it from the routers with "heddle drain ${event.replica}/0"`;
      throw notOurs(event.kind, event.replica, instead);
    }
    if (state === "stopping") throw goesAlready(event.kind, event.replica);
    await decideChecked(loop, event, `replica "${event.replica}"`);
    return { replica: encodeReplica(find(event.kind, event.replica)) };
  };
  return {
    restartReplica({ replicaId: replica, reason }, context) {
      const name = by(context);
      const { model } = find("restart", replica);
      const paused = loop.world().decisions.paused.get(model);
      if (paused !== undefined) throw isPaused(replica, model, paused.by);
      return decide({ kind: "restart", by: name, replica, reason });
    },
    stopReplica: ({ replicaId: replica, reason, atOnce }, context) =>
      decide({ kind: atOnce ? "stop_at_once" : "stop", by: by(context), replica, reason }),
  } satisfies Partial<Handlers>;
}

function listRpc({ by, loop, audit }: OperatorRpcOptions) {
  return {
    listDecisions(_request, context) {
      by(context);
      return { decisions: viewDecisions(loop.world(), loop.now()).map(encodeDecision) };
    },
    async listAudit({ limit }, context) {
      by(context);
      const wanted = limit === 0 ? AUDIT_DEFAULT : Math.min(limit, AUDIT_MAX);
      return { records: (await audit(wanted)).map(encodeAudit) };
    },
  } satisfies Partial<Handlers>;
}

async function decideChecked(
  loop: OperatorRpcOptions["loop"],
  event: OperatorEvent,
  what: string,
): Promise<void> {
  if ("reason" in event && event.reason.length > REASON_CHARS_MAX) {
    const text = `Cannot ${event.kind} ${what}: the reason is longer than ` +
      `${REASON_CHARS_MAX} characters`;
    throw new HeddleError("invalid_input", text);
  }
  await loop.dispatch(event);
}

function notLost(node: string, state: string): HeddleError {
  return new HeddleError(
    "failed_precondition",
    `Cannot forget node "${node}": it is ${state}. Only a lost node is forgotten: drain it, stop ` +
      "its agent, and wait until it is lost",
  );
}

function notOurs(action: string, what: string, instead: string): HeddleError {
  return new HeddleError(
    "failed_precondition",
    `Cannot ${
      action.replaceAll("_", " ")
    } "${what}": something else started that engine; ${instead}`,
  );
}

function tooMany(model: string, replicas: number): HeddleError {
  return new HeddleError(
    "invalid_input",
    `Cannot scale model "${model}" to ${replicas} replicas: ${REPLICAS_MAX} is the most`,
  );
}

function goesAlready(action: string, replica: string): HeddleError {
  return new HeddleError(
    "failed_precondition",
    `Cannot ${action.replaceAll("_", " ")} replica "${replica}": it is being stopped already`,
  );
}

function isPaused(replica: string, model: string, by: string): HeddleError {
  return new HeddleError(
    "failed_precondition",
    `Cannot restart replica "${replica}": model "${model}" is paused by ${by}, so nothing would ` +
      "take its place. Resume the model first, or stop the replica",
  );
}
