/**
 * What control pushes to an open console. Everything in it is text or a number for people: the page
 * shows it as text and never as markup. Times (`since`, `at`, `now`) are on control's own clock, in
 * ms; the page only ever takes differences.
 */

/** Collections that a page can follow. Each is a set of things under a key. */
export const TOPICS = [
  "status",
  "nodes",
  "models",
  "replicas",
  "routers",
  "decisions",
  "traffic",
  "events",
] as const;
export type Topic = (typeof TOPICS)[number];

/** The change of one collection; with `whole`, all of it. */
export interface Frame {
  readonly topic: Topic;
  readonly whole: boolean;
  readonly now: number;
  readonly set: Readonly<Record<string, unknown>>;
  readonly gone: readonly string[];
}

export type ConsoleRole = "viewer" | "operator" | "admin";

/** Who looks, and at what. */
export interface Visit {
  readonly name: string;
  readonly role: ConsoleRole;
  /** False where nobody logs in: on loopback without TLS, and with an operator's certificate. */
  readonly canLogOut: boolean;
  readonly cluster: string;
  readonly version: string;
  /** Whether control knows an endpoint for the playground. */
  readonly playground: boolean;
}

export interface StatusItem {
  readonly leading: boolean;
  /** Who leads instead, or why it is not known; empty while this control leads. */
  readonly standing: string;
  readonly settled: boolean;
  /** Known nodes that have not registered yet. */
  readonly unheard: readonly string[];
  readonly term: number;
  readonly catalogRevision: number;
}

export interface ProblemItem {
  readonly reason: string;
  readonly detail: string;
  readonly remedy: string;
}

export interface GpuItem {
  readonly index: number;
  readonly name: string;
  readonly gpuClass: string;
  readonly totalMib?: number;
  readonly usedMib?: number;
  readonly percent?: number;
  readonly celsius?: number;
  readonly problems: readonly ProblemItem[];
}

export interface HcaItem {
  readonly name: string;
  readonly port: number;
  readonly link: "infiniband" | "ethernet" | "unknown";
  readonly active: boolean;
  readonly gbps?: number;
  readonly fabric: string;
  readonly problems: readonly ProblemItem[];
}

/** What something else started: its agent says that it is there, and control decides nothing about it. */
export interface AttachedItem {
  readonly state: string;
  /** Empty: nobody said. */
  readonly provider: string;
  readonly hostId: string;
  /** Absent: unknown. */
  readonly cards?: number;
  readonly nvlinks?: { readonly up: number; readonly expected: number };
}

export interface NodeItem {
  readonly state: string;
  readonly address: string;
  readonly agentVersion: string;
  /** False until it has registered with this control. */
  readonly known: boolean;
  /** When it was last heard; only of a node that is not. */
  readonly seenAt?: number;
  readonly cordoned: boolean;
  readonly draining: boolean;
  readonly decidedBy: string;
  readonly decisionReason: string;
  readonly system: string;
  readonly cpus: number;
  readonly memoryGib?: number;
  readonly driver: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly engines: readonly { readonly name: string; readonly version: string }[];
  /** Empty: the node is an island of its own. */
  readonly fabrics: readonly {
    readonly name: string;
    readonly gbps?: number;
    readonly degraded: boolean;
  }[];
  readonly gpus: readonly GpuItem[];
  readonly hcas: readonly HcaItem[];
  /** Of the node itself and of its engines. */
  readonly problems: readonly ProblemItem[];
  readonly replicaIds: readonly string[];
  /** Absent of a node of Heddle's. */
  readonly attached?: AttachedItem;
}

export interface ModelItem {
  /** Its place in the catalog. */
  readonly order: number;
  readonly aliases: readonly string[];
  readonly min: number;
  readonly max: number;
  readonly desired: number;
  readonly ready: number;
  readonly starting: number;
  readonly draining: number;
  readonly failedStarts: number;
  /** When the next start is tried; absent when none waits. */
  readonly nextStartAt?: number;
  readonly reason: string;
  readonly scaleReason: string;
  readonly held?: number;
  readonly paused: boolean;
  readonly unsafeProfiles: readonly string[];
}

export interface ShardItem {
  readonly id: string;
  readonly node: string;
  readonly rank: number;
  readonly state: string;
  readonly gpus: readonly number[];
  readonly hcas: readonly string[];
  readonly reason: string;
  readonly message: string;
  readonly progress: string;
  readonly logTail: readonly string[];
}

export interface ReplicaItem {
  readonly model: string;
  readonly profile: string;
  /** Also "degraded" and "suspected", of what is ready. */
  readonly state: string;
  readonly reason: string;
  readonly address: string;
  readonly engine: string;
  readonly fabric: string;
  readonly since: number;
  readonly inFlight?: number;
  readonly shards: readonly ShardItem[];
  /** Absent of what Heddle started. */
  readonly attached?: AttachedItem;
}

export interface RouterItem {
  readonly version: string;
  /** It has what control has published. */
  readonly current: boolean;
  readonly leased: boolean;
  readonly reportAt: number;
  readonly inFlight: number;
  readonly waiting: number;
}

export interface DecisionItem {
  readonly kind: string;
  readonly subject: string;
  readonly value: string;
  readonly by: string;
  readonly reason: string;
  readonly at?: number;
  readonly orphaned: boolean;
}

/** One look at a model's traffic, or at that of all models. */
export interface TrafficSample {
  /** Wall clock of control, in seconds since 1970: for the axis. */
  readonly atS: number;
  /** Requests answered and failed a second, and answered ones that missed the model's slo. */
  readonly requests: number;
  readonly failures: number;
  readonly sloMisses: number;
  readonly inFlight: number;
  readonly waiting: number;
  /** Of those that wait, the ones that wait for room; null while a router does not tell. */
  readonly platinum: number | null;
  readonly gold: number | null;
  readonly silver: number | null;
  readonly bronze: number | null;
  /** Of streams, from arrival to first content; null where none is known to have begun. */
  readonly ttftP50Ms: number | null;
  readonly ttftP99Ms: number | null;
  /** Of prompt tokens, from 0 to 1; null where no engine said what its cache had. */
  readonly cacheShare: number | null;
}

/** The last hour, a column for each field of a sample, oldest first. */
export type TrafficHistory = {
  readonly [Field in keyof TrafficSample]: readonly TrafficSample[Field][];
};

/** Key of the collection `traffic`, and of the history, that stands for all models. */
export const ALL_MODELS = "*";

/** Something that changed its state, or went wrong. */
export interface EventItem {
  /** Wall clock of control, in ms since 1970. */
  readonly atMs: number;
  readonly kind: "node" | "replica" | "model" | "router" | "control";
  readonly subject: string;
  readonly text: string;
  readonly bad: boolean;
  /** What a person does about it; empty where there is nothing to do. */
  readonly next: string;
}

/** What each collection holds. */
export interface Items {
  /** Under one key, "control". */
  readonly status: StatusItem;
  readonly nodes: NodeItem;
  readonly models: ModelItem;
  readonly replicas: ReplicaItem;
  readonly routers: RouterItem;
  readonly decisions: DecisionItem;
  /** The newest sample, by model. */
  readonly traffic: TrafficSample;
  /** By a number that rises. */
  readonly events: EventItem;
}

/** What an action would come to, foreseen by control on a copy of what it knows. */
export interface Preview {
  readonly starts: readonly PreviewReplica[];
  readonly stops: readonly (PreviewReplica & { readonly id: string; readonly reason: string })[];
  readonly kept: number;
  readonly shortages: readonly {
    readonly model: string;
    readonly wanted: number;
    readonly running: number;
    readonly detail: string;
  }[];
  readonly incomplete: boolean;
}

export interface PreviewReplica {
  readonly model: string;
  readonly profile: string;
  readonly nodes: readonly string[];
}
