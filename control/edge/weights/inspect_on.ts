/** Asks one node what a source holds. */
import { HeddleError } from "@heddle/proto/error";
import type { SourceFacts, WeightsWant } from "@heddle/proto/gen/weights";
import type { Plain } from "@heddle/proto/plain";
import type { NodeRequests } from "../node_requests.ts";

/** Longer than a node itself waits. */
const INSPECT_MS = 150_000;

/** Throws `failed_precondition` with the node's words, and what `ask` throws. */
export async function inspectOn(
  requests: Pick<NodeRequests, "ask">,
  node: string,
  want: Plain<WeightsWant>,
): Promise<SourceFacts> {
  const { include, exclude, ...rest } = want;
  const value = { ...rest, include: [...include], exclude: [...exclude] };
  const { reason, message, answer } = await requests.ask(
    node,
    { case: "inspectSource", value },
    INSPECT_MS,
  );
  if (reason === "" && answer.case === "facts") return answer.value;
  throw new HeddleError(
    "failed_precondition",
    `Cannot inspect ${want.source} from node "${node}": ${message || "it did not say"}` +
      (reason === "" ? "" : ` (${reason})`),
  );
}

/** Nodes that are asked for a path in one go. */
const ASKED_AT_ONCE = 64;

/**
 * What lies under a path on the first of `nodes` that can read it, and on which. Throws `not_found`
 * when none can, and what asking the last of them throws when no node answered.
 */
export async function inspectPath(
  requests: Pick<NodeRequests, "ask">,
  nodes: readonly string[],
  want: Plain<WeightsWant>,
): Promise<{ readonly facts: SourceFacts; readonly node: string }> {
  let failure: unknown;
  let answered = 0;
  for (let from = 0; from < nodes.length; from += ASKED_AT_ONCE) {
    const some = nodes.slice(from, from + ASKED_AT_ONCE);
    const results = await Promise.allSettled(some.map(async (node) => ({
      node,
      facts: await inspectOn(requests, node, want),
    })));
    for (const result of results) {
      if (result.status === "rejected") failure = result.reason;
      else if (isThere(result.value.facts)) return result.value;
      else answered++;
    }
  }
  if (answered === 0 && failure !== undefined) throw failure;
  const [only = ""] = nodes;
  const who = nodes.length === 1 ? `node "${only}" cannot` : `none of ${nodes.length} nodes can`;
  throw new HeddleError(
    "not_found",
    `Cannot inspect ${want.source}: ${who} read it. It is not there, or in none of the folders ` +
      "that agent.yaml names in model_dirs",
  );
}

/** An agent answers of a path that it cannot read as well, and knows nothing then. */
function isThere({ weightBytes, model }: SourceFacts): boolean {
  return weightBytes !== undefined || (model?.architecture ?? "") !== "";
}
