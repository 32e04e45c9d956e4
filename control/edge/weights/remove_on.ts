/** Has one node remove a folder of weights. */
import { HeddleError } from "@heddle/proto/error";
import type { NodeRequests } from "../node_requests.ts";

/** Removing a terabyte takes a while on some file systems. */
const REMOVE_MS = 300_000;

/** Bytes that were freed. Throws `failed_precondition` with the node's words, and what `ask` throws. */
export async function removeOn(
  requests: Pick<NodeRequests, "ask">,
  node: string,
  folder: string,
): Promise<bigint> {
  const ask = { case: "removeWeights", value: folder } as const;
  const { reason, message, answer } = await requests.ask(node, ask, REMOVE_MS);
  if (reason === "") return answer.case === "freedBytes" ? answer.value : 0n;
  throw new HeddleError(
    "failed_precondition",
    `Cannot remove ${folder} on node "${node}": ${message} (${reason})`,
  );
}
