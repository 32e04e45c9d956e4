/** An endpoint: a ready replica as the router sees it, wherever it was learnt. */
import type { Band } from "../admission/band.ts";
import type { Slo } from "./slo.ts";

/** Where an engine listens. */
export interface Origin {
  readonly secure: boolean;
  /** A name or address, IPv6 without brackets. */
  readonly host: string;
  readonly port: number;
  /** What precedes "/v1/…" on that engine: "" or "/prefix", without a slash at the end. */
  readonly basePath: string;
}

export interface Endpoint {
  /** The replica's id, or the configured name of a static endpoint. Unique in a table. */
  readonly replicaId: string;
  /** The name of the model, never an alias. */
  readonly model: string;
  readonly origin: Origin;
  /** Empty for static endpoints, which belong to no node of ours. */
  readonly node: string;
  readonly engine: string;
  readonly profile: string;
  /** The name the engine knows the model by. */
  readonly servedName: string;
  /** Empty when the engine wants none. */
  readonly apiKey: string;
  /** Share among endpoints of the same priority, above zero. */
  readonly weight: number;
  /** Endpoints of the highest priority are used first. */
  readonly priority: number;
  /** No new requests; those in flight go on. */
  readonly draining: boolean;
  /** Its agent doubts it: it is asked only when no other can be. */
  readonly degraded: boolean;
  /** Tokens of prompt and answer together; undefined when not known. */
  readonly maxModelLen: number | undefined;
  /** GPUs of all its shards; absent where nobody says. */
  readonly gpus?: number;
  /** Fabric, or node where it is its own island, and GPU class; absent where nobody says. */
  readonly pool?: string;
}

/** A model as clients may ask for it. */
export interface Model {
  readonly name: string;
  readonly aliases: readonly string[];
  /** Names or aliases to try, in order, when this model cannot serve. */
  readonly fallbacks: readonly string[];
  readonly routingProfile: string;
  /** Band of its requests where neither header nor key says one; absent when nobody set it. */
  readonly band?: Band;
  /** Requests in flight at which one of its replicas is full; absent when that is to be learnt. */
  readonly capacity?: number;
  /** Why it has no endpoint, in words; empty when it has one. */
  readonly reason: string;
  /** True when a Wake could start it. */
  readonly wakeable: boolean;
  /** When the catalog first had it, in seconds since 1970. */
  readonly createdS: number;
  /** Absent when nothing is promised. */
  readonly slo?: Slo;
}

/** True when a connection to `a` is one to `b`: then faults of the one say something of the other. */
export function sameOrigin(a: Origin, b: Origin): boolean {
  return a.secure === b.secure && a.host === b.host && a.port === b.port &&
    a.basePath === b.basePath;
}
