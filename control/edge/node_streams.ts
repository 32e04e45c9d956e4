/**
 * The live stream of each node. A node's newest stream is the one that counts: a node that
 * reconnects after a network cut comes back before its old stream is known to be dead, so the old
 * one is ended with the reason, and its end says nothing about the node.
 */
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { HeddleError } from "@heddle/proto/error";
import { type ConnectResponse, ConnectResponseSchema } from "@heddle/proto/gen/agent";
import { BoundedQueue } from "./bounded_queue.ts";

/**
 * Commands that may wait for one node. A node runs at most a few dozen shards, each with one
 * command in flight, beside its log requests; more than this means that it does not read.
 */
export const NODE_QUEUE_MAX = 256;

/** What is sent to a node: one member of ConnectResponse. */
export type NodeMessage = NonNullable<MessageInitShape<typeof ConnectResponseSchema>["message"]>;

/** One stream of a node, from its registration to its end. */
export interface NodeStream {
  readonly node: string;
  /** What is to be sent, in order. */
  readonly outgoing: BoundedQueue<ConnectResponse>;
}

export class NodeStreams {
  readonly #streams = new Map<string, NodeStream>();
  readonly #onEnded: (node: string) => void;

  /** `onEnded` is called when a node's newest stream has ended, not when one is replaced. */
  constructor(onEnded: (node: string) => void) {
    this.#onEnded = onEnded;
  }

  /** How many nodes are connected. */
  get size(): number {
    return this.#streams.size;
  }

  /** Names of those that are connected. */
  nodes(): readonly string[] {
    return [...this.#streams.keys()];
  }

  /** Makes a stream the node's newest one; an older one ends with an error that says so. */
  open(node: string): NodeStream {
    const stream = { node, outgoing: new BoundedQueue<ConnectResponse>(NODE_QUEUE_MAX) };
    const older = this.#streams.get(node);
    this.#streams.set(node, stream);
    older?.outgoing.fail(
      new HeddleError(
        "failed_precondition",
        `Stream of node "${node}" was replaced: the node has opened a newer one`,
      ),
    );
    return stream;
  }

  /** Ends a stream; calls `onEnded` unless a newer one has replaced it. Idempotent. */
  close(stream: NodeStream): void {
    stream.outgoing.end();
    if (this.#streams.get(stream.node) !== stream) return;
    this.#streams.delete(stream.node);
    this.#onEnded(stream.node);
  }

  /** True when this stream is the node's newest. */
  current(stream: NodeStream): boolean {
    return this.#streams.get(stream.node) === stream;
  }

  /**
   * Queues a message. Throws `unavailable` when the node has no stream, and `exhausted` when it
   * does not read what it is sent: then its stream is ended too, so that it registers anew.
   */
  send(node: string, message: NodeMessage): void {
    const stream = this.#streams.get(node);
    if (stream === undefined) {
      throw new HeddleError("unavailable", `Cannot send to node "${node}": it is not connected`);
    }
    if (stream.outgoing.push(create(ConnectResponseSchema, { message }))) return;
    const error = new HeddleError(
      "exhausted",
      `Cannot send to node "${node}": ${NODE_QUEUE_MAX} messages wait that it does not read`,
    );
    stream.outgoing.fail(error);
    this.close(stream);
    throw error;
  }

  /** Ends every stream with `error`: control stops. */
  closeAll(error: HeddleError): void {
    for (const stream of [...this.#streams.values()]) stream.outgoing.fail(error);
  }
}
