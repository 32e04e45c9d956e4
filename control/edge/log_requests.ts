/**
 * Reads logs from nodes over the streams they hold anyway: a request goes down with an id, and
 * chunks with that id come up. Each reader has a bound; one that is too slow for what it follows is
 * told so, because a node must not wait for an operator's terminal.
 */
import { HeddleError } from "@heddle/proto/error";
import type { LogChunk } from "@heddle/proto/gen/agent";
import { BoundedQueue } from "./bounded_queue.ts";
import type { NodeMessage } from "./node_streams.ts";

/** Chunks that may wait for one reader: some MiB at an agent's usual size of chunk. */
const READER_CHUNKS_MAX = 256;

/** Readers at a time in all. Each costs a file handle and a follower on a node. */
const READERS_MAX = 64;

export interface LogSource {
  readonly node: string;
  /** A shard id, or "agent". */
  readonly source: string;
  /** How many of the last lines to begin with. */
  readonly tailLines: number;
  readonly follow: boolean;
}

interface Reader {
  readonly node: string;
  readonly chunks: BoundedQueue<readonly string[]>;
}

export class LogRequests {
  readonly #readers = new Map<string, Reader>();
  readonly #send: (node: string, message: NodeMessage) => void;

  constructor(send: (node: string, message: NodeMessage) => void) {
    this.#send = send;
  }

  /** How many readers there are. */
  get size(): number {
    return this.#readers.size;
  }

  /**
   * Lines of a source, in groups, until its end, or until `signal` aborts. Throws `unavailable` when the node is or goes
   * away, `exhausted` when the reader is too slow or there are too many.
   */
  async *read(source: LogSource, signal: AbortSignal): AsyncGenerator<readonly string[]> {
    if (this.#readers.size >= READERS_MAX) {
      throw new HeddleError("exhausted", `Cannot read logs: ${READERS_MAX} others read already`);
    }
    const requestId = crypto.randomUUID();
    const chunks = new BoundedQueue<readonly string[]>(READER_CHUNKS_MAX);
    const { node, tailLines, follow } = source;
    const onAbort = () => chunks.end();
    this.#readers.set(requestId, { node, chunks });
    signal.addEventListener("abort", onAbort);
    try {
      this.#send(node, {
        case: "readLog",
        value: { requestId, source: source.source, tailLines, follow },
      });
      if (signal.aborted) chunks.end();
      yield* chunks;
    } finally {
      signal.removeEventListener("abort", onAbort);
      this.#cancel(requestId);
    }
  }

  /** Takes a chunk from a node. One for a reader that has left, or of another node, is ignored. */
  accept(node: string, chunk: LogChunk): void {
    const reader = this.#readers.get(chunk.requestId);
    if (reader === undefined || reader.node !== node) return;
    if (chunk.lines.length > 0 && !reader.chunks.push(chunk.lines)) {
      reader.chunks.fail(
        new HeddleError(
          "exhausted",
          `Stopped reading logs of node "${node}": the lines come faster than they are read`,
        ),
      );
    }
    if (!chunk.end && chunk.error === "") return;
    // The node has ended it, so there is nothing to cancel there.
    this.#readers.delete(chunk.requestId);
    if (chunk.error === "") reader.chunks.end();
    else {
      const text = `Cannot read logs of node "${node}": ${chunk.error}`;
      reader.chunks.fail(new HeddleError("failed_precondition", text));
    }
  }

  /** The node's stream is gone, and with it everything that was asked of it. */
  nodeGone(node: string): void {
    for (const [id, reader] of this.#readers) {
      if (reader.node !== node) continue;
      this.#readers.delete(id);
      const text = `Stopped reading logs of node "${node}": its connection was lost`;
      reader.chunks.fail(new HeddleError("unavailable", text));
    }
  }

  #cancel(requestId: string): void {
    const reader = this.#readers.get(requestId);
    if (reader === undefined) return;
    this.#readers.delete(requestId);
    try {
      this.#send(reader.node, { case: "cancelLog", value: { requestId } });
    } catch (error) {
      // A node that cannot be told has no stream any more, so it follows nothing for us.
      if (!(error instanceof HeddleError)) throw error;
    }
  }
}
