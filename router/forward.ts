/**
 * Schedule and forward: tries endpoints of a model, then of its fallbacks, until one serves or
 * there is none left. Another is tried only while the client has no content.
 */
import type { ResponseSoFar } from "./core/engine_error_shape.ts";
import type { Model } from "./core/fleet/endpoint.ts";
import { WORKS } from "./core/fleet/judgement.ts";
import { usageOfAttempt } from "./core/request/attempt_usage.ts";
import type { Outcome, OutcomeReason } from "./core/request/outcome.ts";
import type { ParsedRequest } from "./core/request/request.ts";
import type { Attempt } from "./core/request/usage_record.ts";
import type { Ask } from "./core/schedule/ask.ts";
import { type Circumstances, explanation } from "./core/schedule/explanation.ts";
import type { Reply } from "./edge/client/reply.ts";
import type { RouterMetrics, Server } from "./edge/observe/router_metrics.ts";
import type { RequestTrace, TryTrace } from "./edge/observe/traces.ts";
import type { Failure } from "./edge/relay/failure.ts";
import { relay } from "./edge/relay/relay.ts";
import type { Relayed } from "./edge/relay/relayed.ts";
import type { Spool } from "./edge/upload/spool.ts";
import type { UpstreamPool } from "./edge/upstream.ts";
import type { Timeouts } from "./settings/settings.ts";
import type { Endpoints, Slot } from "./endpoints.ts";
import { unavailable } from "./queue.ts";

export interface ForwardOptions {
  readonly request: ParsedRequest;
  /** Where the body lies that is not in memory; the caller's to dispose. */
  readonly spool: Spool | undefined;
  /** What of the client's headers the engine gets. */
  readonly headers: Readonly<Record<string, string>>;
  readonly requestId: string;
  /** Best first; at least one. */
  readonly models: readonly Model[];
  /** Why a model may not be used although it is next; undefined when it may. */
  readonly mayUse: (model: Model) => Outcome | undefined;
  /** Tokens of the prompt at a model, estimated. */
  readonly promptTokens: (model: string) => number;
  readonly startedAt: number;
  readonly ask: Omit<Ask, "tried">;
  /** How it was admitted, for a client that may ask why it was sent where it was; else undefined. */
  readonly explain: Omit<Circumstances, "profile"> | undefined;
  readonly trace?: RequestTrace | undefined;
}

export interface ForwardParts {
  readonly endpoints: Endpoints;
  readonly pool: UpstreamPool;
  readonly timeouts: Timeouts;
  readonly metrics: RouterMetrics;
  /** Milliseconds, monotonic. */
  readonly now: () => number;
}

export interface Forwarded {
  readonly outcome: Outcome;
  /** The model and the replica that answered, or were asked last. */
  readonly model: string;
  readonly replicaId: string;
  /** Of that replica; empty when nobody says. */
  readonly pool: string;
  /** Every try, in order. */
  readonly attempts: readonly Attempt[];
  readonly firstContentMs: number | undefined;
  /** What a Responses stream that broke off had told of its answer. */
  readonly response: ResponseSoFar | undefined;
}

/**
 * Replicas that one request may break. Each might have failed by itself, but a request that kills
 * what it touches must not walk through the fleet.
 */
const SUSPECT_TRIES_MAX = 3;

/** What a replica is taken to use of which nobody says how many GPUs it has. */
const GPUS_UNKNOWN = 1;

/** No prompt that an engine takes is read for longer than this. */
const PROMPT_MS_MAX = 1_800_000;

/** Never throws for what engines and clients do. */
export async function forward(
  reply: Reply,
  options: ForwardOptions,
  parts: ForwardParts,
): Promise<Forwarded> {
  const progress = new Progress(options, parts);
  for (const model of options.models) {
    const tried = new Set<string>();
    const refused = options.mayUse(model);
    if (refused !== undefined) {
      progress.mayNotUse(refused);
      continue;
    }
    for (;;) {
      const from = parts.now();
      const taken = parts.endpoints.take(model.name, askAgain(reply, options, tried));
      parts.metrics.stage("schedule", parts.now() - from);
      if (!("endpoint" in taken)) break;
      using slot = taken;
      tried.add(slot.endpoint.replicaId);
      const end = progress.after(slot, await progress.tryAt(reply, slot));
      if (end !== undefined) return end;
    }
    if (tried.size === 0) progress.nothingToTry(model);
  }
  return progress.exhausted();
}

/** What is asked at each try. Why it was answered so is said anew each time: the last one counts. */
function askAgain(
  reply: Reply,
  { explain, ask }: ForwardOptions,
  tried: ReadonlySet<string>,
): Ask {
  if (explain === undefined) return { ...ask, tried };
  const about = { ...explain, profile: ask.profile };
  return {
    ...ask,
    tried,
    onPicked: (picked) =>
      reply.remark("x-heddle-explain", explanation(picked, { ...ask, tried }, about)),
  };
}

class Progress {
  readonly #options: ForwardOptions;
  readonly #parts: ForwardParts;
  readonly #attempts: Attempt[] = [];
  #tryFrom = 0;
  #suspects = 0;
  #model = "";
  #replicaId = "";
  #pool = "";
  #failure: Failure | undefined;
  #unserved: Outcome | undefined;
  #firstContentMs: number | undefined;
  #try: TryTrace | undefined;

  constructor(options: ForwardOptions, parts: ForwardParts) {
    this.#options = options;
    this.#parts = parts;
  }

  tryAt(reply: Reply, slot: Slot): Promise<Relayed> {
    const { endpoint } = slot;
    const { request, requestId, headers, spool, trace } = this.#options;
    this.#try = trace?.tryAt(endpoint);
    const { timeouts, pool } = this.#parts;
    this.#tryFrom = this.#parts.now();
    this.#model = endpoint.model;
    this.#replicaId = endpoint.replicaId;
    this.#pool = endpoint.pool ?? "";
    return relay(reply, {
      pool,
      endpoint,
      request,
      spool,
      requestId,
      clientHeaders: { ...headers, ...this.#try?.headers },
      ...waits(request, timeouts),
      onContent: this.#contentClock(slot),
    });
  }

  /** Judges the replica by what happened, and returns the request's end when this was it. */
  after(slot: Slot, relayed: Relayed): Forwarded | undefined {
    this.#try?.end(wordFor(relayed));
    this.#note(slot, relayed);
    const cached = relayed.kind === "failed" ? undefined : relayed.work?.usage?.cachedTokens;
    if (cached !== undefined) slot.cached(cached);
    switch (relayed.kind) {
      case "served":
        slot.judge(WORKS);
        return this.#ended({ reason: "ok" });
      case "client_closed":
        return this.#ended({ reason: "client_closed" });
      case "broken":
        slot.judge(relayed.failure.judgement);
        this.#count(relayed.failure);
        return {
          ...this.#ended(brokenBy(relayed.failure)),
          response: relayed.response,
        };
      case "failed":
        slot.judge(relayed.failure.judgement);
        this.#count(relayed.failure);
        return this.#givesUp(relayed.failure) ? this.#ended(relayed.failure.outcome) : undefined;
      default:
        return relayed satisfies never;
    }
  }

  /** `model` has endpoints, but not one that may be used. */
  nothingToTry(model: Model): void {
    this.#unserved ??= unavailable(this.#options.request.model, model);
  }

  exhausted(): Forwarded {
    const outcome = this.#failure?.outcome ?? this.#unserved;
    if (outcome === undefined) throw new Error("No model was tried");
    return this.#ended(outcome);
  }

  /** `outcome` tells why the next model may not be used. */
  mayNotUse(outcome: Outcome): void {
    this.#unserved ??= outcome;
  }

  #note({ endpoint }: Slot, relayed: Relayed): void {
    const { request, promptTokens } = this.#options;
    const engineMs = this.#parts.now() - this.#tryFrom;
    const { usage, estimated } = usageOfAttempt(request, {
      work: relayed.work,
      left: relayed.kind === "client_closed",
      engineMs,
      promptTokens: promptTokens(endpoint.model),
    });
    const served = relayed.kind !== "failed";
    if (!served && usage !== undefined) {
      this.#parts.metrics.wasted(endpoint.model, usage.promptTokens + usage.completionTokens);
    }
    this.#attempts.push({
      replicaId: endpoint.replicaId,
      model: endpoint.model,
      outcome: wordFor(relayed),
      usage,
      estimated,
      served,
      engineMs,
      gpus: endpoint.gpus ?? GPUS_UNKNOWN,
    });
  }

  #count(failure: Failure): void {
    this.#failure = failure;
    if (failure.suspect) this.#suspects++;
    if (failure.outcome.reason === "engine_refused") return;
    this.#parts.metrics.failedTry(this.#model, failure.outcome.reason);
  }

  #givesUp(failure: Failure): boolean {
    return !failure.retryable || this.#suspects >= SUSPECT_TRIES_MAX;
  }

  #contentClock(slot: Slot): () => void {
    const { metrics, now } = this.#parts;
    const from: Server = { model: slot.endpoint.model, replica: slot.endpoint.replicaId };
    const { stream } = this.#options.request;
    let last: number | undefined;
    return () => {
      const at = now();
      if (last === undefined) {
        if (stream) slot.firstToken();
        this.#firstContentMs = at - this.#options.startedAt;
        metrics.firstContent(from, this.#firstContentMs);
      } else metrics.contentGap(from, at - last);
      last = at;
    };
  }

  #ended(outcome: Outcome): Forwarded {
    return {
      outcome,
      model: this.#model,
      replicaId: this.#replicaId,
      pool: this.#pool,
      attempts: this.#attempts,
      firstContentMs: this.#firstContentMs,
      response: undefined,
    };
  }
}

/**
 * How long an engine may be silent. A long prompt takes long to read, also between the role and the
 * first token; an answer that is not streamed is silent until all of it has been written.
 */
function waits({ stream, promptTokensEstimate }: ParsedRequest, timeouts: Timeouts) {
  const promptMs = Math.min(
    timeouts.firstBytePer1kTokensMs * promptTokensEstimate / 1_000,
    PROMPT_MS_MAX,
  );
  return {
    firstByteTimeoutMs: (stream ? timeouts.firstByteMs : timeouts.wholeAnswerMs) + promptMs,
    idleTimeoutMs: timeouts.betweenChunksMs + promptMs,
  };
}

/** How a try ended, in the word for it. */
function wordFor(relayed: Relayed): OutcomeReason {
  switch (relayed.kind) {
    case "served":
      return "ok";
    case "client_closed":
      return "client_closed";
    case "broken":
      return "stream_broken";
    case "failed":
      return relayed.failure.outcome.reason;
  }
}

function brokenBy({ outcome }: Failure): Outcome {
  const message = outcome.reason === "engine_refused"
    ? outcome.error.message
    : "message" in outcome
    ? outcome.message
    : "The answer broke off";
  return { reason: "stream_broken", message };
}
