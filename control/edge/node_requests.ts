/**
 * Asks nodes for what takes them a while, over the streams they hold anyway: a request goes down with
 * an id, and one answer with that id comes up.
 */
import { HeddleError } from "@heddle/proto/error";
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { NodeAnswer, NodeRequestSchema } from "@heddle/proto/gen/weights";
import type { NodeMessage } from "./node_streams.ts";

/** Asked and not answered yet, of all nodes together. */
const REQUESTS_MAX = 2_000;

type Ask = Exclude<
  NonNullable<MessageInitShape<typeof NodeRequestSchema>["ask"]>,
  { case: undefined }
>;

interface Waiting {
  readonly node: string;
  readonly settle: (answer: NodeAnswer | HeddleError) => void;
}

export class NodeRequests {
  readonly #waiting = new Map<string, Waiting>();
  readonly #send: (node: string, message: NodeMessage) => void;

  constructor(send: (node: string, message: NodeMessage) => void) {
    this.#send = send;
  }

  /**
   * The node's answer, whatever it says. Throws `unavailable` when the node is or goes away, `timeout`
   * when it does not answer in time, `exhausted` when too many are asked.
   */
  async ask(node: string, ask: Ask, timeoutMs: number): Promise<NodeAnswer> {
    if (this.#waiting.size >= REQUESTS_MAX) {
      throw new HeddleError(
        "exhausted",
        `Cannot ask node "${node}": ${REQUESTS_MAX} are asked now`,
      );
    }
    const requestId = crypto.randomUUID();
    const { promise, resolve, reject } = Promise.withResolvers<NodeAnswer>();
    const late = setTimeout(
      () =>
        reject(
          new HeddleError(
            "timeout",
            `Node "${node}" did not answer within ${timeoutMs / 1_000} s`,
          ),
        ),
      timeoutMs,
    );
    const settle = (answer: NodeAnswer | HeddleError) =>
      answer instanceof HeddleError ? reject(answer) : resolve(answer);
    this.#waiting.set(requestId, { node, settle });
    try {
      this.#send(node, { case: "nodeRequest", value: { requestId, ask } });
      return await promise;
    } finally {
      clearTimeout(late);
      this.#waiting.delete(requestId);
    }
  }

  /** Takes an answer. One that nobody waits for, or of another node, is ignored. */
  accept(node: string, answer: NodeAnswer): void {
    const waiting = this.#waiting.get(answer.requestId);
    if (waiting?.node === node) waiting.settle(answer);
  }

  /** The node's stream is gone, and with it everything that was asked of it. */
  nodeGone(node: string): void {
    for (const waiting of this.#waiting.values()) {
      if (waiting.node !== node) continue;
      const text = `Node "${node}" was lost before it answered`;
      waiting.settle(new HeddleError("unavailable", text));
    }
  }
}
