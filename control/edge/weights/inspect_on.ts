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
