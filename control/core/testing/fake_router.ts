/** A router for simulations: sends requests to what it was told, and says what it has in flight. */
import type { Event } from "../event.ts";
import type { EpochMs, NodeId, ReplicaId } from "../ids.ts";
import type { Published } from "../published.ts";
import { NO_REVISION, type Revision } from "@heddle/proto/revision";
import type { FakeNode } from "./fake_node.ts";
import type { Random } from "./random.ts";

/** Longest request, in ms; a drain waits for these. */
const REQUEST_MS_MAX = 15_000;

interface Request {
  readonly replica: ReplicaId;
  readonly node: NodeId;
  readonly sentAt: EpochMs;
  readonly until: EpochMs;
  /** Sent while nobody could hear of it: only an engine's last numbers, up to a heartbeat old, do. */
  readonly unheard: boolean;
}

export class FakeRouter {
  readonly name: string;
  /** Neither reports nor hears; its lease runs out. */
  cutOff = false;
  /** Sends no requests. */
  quiet = false;
  /** Chance of a new request in each step. */
  rate = 0.3;
  /** It has reported since it was last cut off: until then its lease has ended. */
  #heard = false;
  #applied: Revision = NO_REVISION;
  #instance = 1;
  #endpoints = new Map<ReplicaId, { readonly node: NodeId; readonly draining: boolean }>();
  #requests: Request[] = [];
  #now: EpochMs = 0;

  constructor(name: string) {
    this.name = name;
  }

  /** A whole publication: keeps what an unsettled node had, as routers must. */
  apply(published: Published): void {
    if (this.cutOff) return;
    const { term, sequence } = published.revision;
    if (
      term < this.#applied.term ||
      (term === this.#applied.term && sequence < this.#applied.sequence)
    ) {
      return;
    }
    const settled = new Set(published.settledNodes);
    const kept = [...this.#endpoints].filter(([id, { node }]) =>
      !published.endpoints.has(id) && !published.removed.has(id) && !settled.has(node)
    );
    this.#endpoints = new Map([
      ...kept,
      ...[...published.endpoints].map(([id, { node, draining }]) =>
        [id, { node, draining }] as const
      ),
    ]);
    this.#applied = published.revision;
  }

  step(now: EpochMs, random: Random): void {
    this.#now = now;
    if (this.cutOff) this.#heard = false;
    this.#requests = this.#requests.filter((request) => request.until > now);
    const open = [...this.#endpoints].filter(([, { draining }]) => !draining);
    if (this.quiet || open.length === 0 || !random.chance(this.rate)) return;
    const [replica, { node }] = random.pick(open);
    this.#requests.push({
      replica,
      node,
      sentAt: now,
      until: now + random.int(200, REQUEST_MS_MAX),
      unheard: !this.#heard,
    });
  }

  inFlight(replica: ReplicaId): number {
    return this.#requests.filter((request) => request.replica === replica).length;
  }

  endpoints(): readonly ReplicaId[] {
    return [...this.#endpoints.keys()].sort();
  }

  /** Replicas on its list, and whether each drains. */
  list(): ReadonlyMap<ReplicaId, boolean> {
    return new Map([...this.#endpoints].map(([id, { draining }]) => [id, draining]));
  }

  /** Its process restarts: the list is on disk, the requests are lost with it. */
  restart(): void {
    this.#requests = [];
    this.#instance++;
  }

  report(): Event {
    this.#heard = true;
    const counts = new Map<ReplicaId, number>();
    for (const { replica } of this.#requests) counts.set(replica, (counts.get(replica) ?? 0) + 1);
    return {
      kind: "router_report",
      router: this.name,
      version: "0.1.0",
      instance: `${this.#instance}`,
      applied: this.#applied,
      replicas: new Map(
        [...counts].map(([id, inFlight]) => [id, { inFlight, reservedTokens: 0 }]),
      ),
      models: new Map(),
    };
  }

  /** Requests whose engine was told to stop while it served them. Each is told once. */
  takeCut(nodes: ReadonlyMap<NodeId, FakeNode>): readonly string[] {
    const cut: string[] = [];
    this.#requests = this.#requests.filter((request) => {
      const shard = [...nodes.get(request.node)?.shards.values() ?? []]
        .find((each) => each.spec.replicaId === request.replica && each.spec.rank === 0);
      if (shard?.state !== "stopping") return true;
      if (shard.reason === "drained" && !request.unheard && request.sentAt < shard.since) {
        cut.push(
          `a request with ${request.until - this.#now} ms to go was cut on ${request.replica}`,
        );
      }
      return false;
    });
    return cut;
  }
}
