/** What the loop does to the world outside, and what is said of it in the log and the metrics. */
import { errorText, HeddleError } from "@heddle/proto/error";
import { formatRevision } from "@heddle/proto/revision";
import { logger } from "@heddle/common/log";
import type { Violation } from "./core/check_plan.ts";
import type { Action } from "./core/plan.ts";
import type { StoreRecord } from "./core/store_record.ts";
import { encodeCommand } from "./edge/agent_client.ts";
import type { ControlMetrics } from "./edge/control_metrics.ts";
import type { NodeStreams } from "./edge/node_streams.ts";
import type { Store } from "./edge/store/store.ts";
import type { WatchHub } from "./edge/watch/hub.ts";
import type { Effects, LoopHooks } from "./loop.ts";

const log = logger("control", "loop");

export function effectsOf(parts: {
  readonly streams: NodeStreams;
  readonly hub: WatchHub;
  readonly store: Store;
  readonly metrics: ControlMetrics;
  /** False while another control may lead. */
  readonly sure: () => boolean;
}): Effects {
  const { streams, hub, store, metrics, sure } = parts;
  const write = async (records: readonly StoreRecord[]) => {
    if (!sure()) throw unsure();
    await store.persist(records);
  };
  return {
    sendCommand: (node, command) => streams.send(node, encodeCommand(command)),
    publish: (published) => hub.publish(published),
    leads: sure,
    async remember(records) {
      try {
        await write(records);
      } catch (error) {
        metrics.storeFailed();
        throw error;
      }
    },
    async persist(records) {
      try {
        await write(records);
      } catch (error) {
        metrics.storeFailed();
        log.error("Cannot store a decision, so it does not take effect", {
          reason: errorText(error),
        });
        throw error;
      }
      for (const record of records) {
        if (record.kind !== "audit") continue;
        const { action, subject, by, reason } = record;
        log.info(`Decided: ${action}`, { subject, by, reason: reason === "" ? undefined : reason });
      }
    },
  };
}

function unsure(): HeddleError {
  return new HeddleError(
    "system",
    "Cannot store anything: the store does not answer, and another control may lead by now",
  );
}

export function hooksOf(
  { metrics, dropped }: {
    readonly metrics: ControlMetrics;
    /** Told each plan that was dropped, by a rule that it would have broken. */
    readonly dropped: (violation: Violation) => void;
  },
): LoopHooks {
  return {
    passed({ plan, violations, durationMs }) {
      metrics.pass(durationMs, violations.map(({ rule }) => rule));
      for (const { rule, detail } of violations) {
        log.error("A plan would have broken a rule and was dropped", { rule, detail });
      }
      const [first] = violations;
      if (first !== undefined) return dropped(first);
      for (const { model, count, reason } of plan.steps) {
        log.info("scale model", { model, replicas: count, reason });
      }
      for (const action of plan.actions) sayAction(action);
    },
    failed(what, error) {
      metrics.loopFailed();
      // A node that is away, or does not read, is its own business; the command goes out again.
      if (error instanceof HeddleError) log.warning(what, { reason: error.message });
      else log.error(what, { error });
    },
  };
}

// Specs stay out of the log: their env may hold what is nobody's business.
function sayAction(action: Action): void {
  const words = action.kind.replaceAll("_", " ");
  const { replica } = action;
  switch (action.kind) {
    case "start_shard":
    case "stop_shard":
      return log.info(words, {
        shard: action.shard,
        node: action.node,
        revision: formatRevision(action.revision),
        ...(action.kind === "stop_shard" ? { reason: action.reason } : {}),
      });
    case "place_replica": {
      const nodes = action.shards.map(({ node }) => node).join(",");
      return log.info(words, { replica, profile: action.profile, nodes });
    }
    case "fail_replica":
      return log.warning(words, { replica, reason: action.reason, detail: action.message });
    default:
      return log.info(words, { replica, ...("reason" in action ? { reason: action.reason } : {}) });
  }
}
