/**
 * The router's own admission and scheduling in front of simulated engines, on a clock that costs no
 * time. Everything that decides is the product's: `Admission`, `Endpoints`, the reader of engines'
 * metrics; everything that is slow is the simulated engine's own model.
 */
import xxhash from "xxhash-wasm";
import { Admission } from "../../router/core/admission/admission.ts";
import type { Band } from "../../router/core/admission/band.ts";
import type { Bounds, Ticket } from "../../router/core/admission/model_queue.ts";
import { blocksOf, type PromptBlocks } from "../../router/core/affinity/blocks.ts";
import { EMPTY_TABLE } from "../../router/core/fleet/table.ts";
import { readEngineSample } from "../../router/core/load/engine_sample.ts";
import { candidate } from "../../router/core/schedule/candidate_fake.ts";
import { WEIGHTS_DEFAULT } from "../../router/core/schedule/routing_profile.ts";
import type { Weights } from "../../router/core/schedule/scorers.ts";
import { Endpoints, type Slot } from "../../router/endpoints.ts";
import { Engine, type EngineOptions, type EngineOutput } from "../../sim/core/engine/engine.ts";
import { Answer } from "../../sim/core/text/answer.ts";
import { Clock } from "./clock.ts";

const { h64Raw } = await xxhash();

export interface SimulatedRequest {
  readonly at: number;
  readonly band: Band;
  readonly tenant: string;
  readonly promptTokens: number;
  /** Equal beginnings are equal prefixes. Made only when it is sent: most of a flood never is. */
  readonly prompt: () => readonly number[];
  readonly answerTokens: number;
}

/** How a request went; times in ms on the fleet's clock. */
export interface Fate {
  readonly request: SimulatedRequest;
  outcome: "waits" | "runs" | "served" | "rejected" | "expired";
  letInAt: number | undefined;
  firstTokenAt: number | undefined;
  endedAt: number | undefined;
  replicaId: string | undefined;
  cachedTokens: number;
}

export interface FleetOptions {
  readonly replicas: number;
  readonly bounds: Bounds;
  readonly weights?: Weights;
  readonly engine?: Partial<EngineOptions>;
  /** The first replica's, where it is another. */
  readonly firstEngine?: Partial<EngineOptions>;
  /** A replica's capacity; learnt when left out. */
  readonly capacity?: number;
  readonly scrapeMs?: number;
  readonly seed?: number;
}

const SCRAPE_MS = 2_000;
const LOOK_MS = 100;
const MODEL = "m";

/** A card that runs an 8B model: see `sim/core/engine/speed.ts` for what the figures mean. */
const ENGINE: EngineOptions = {
  modelName: MODEL,
  contextTokensMax: 16_384,
  sequencesMax: 128,
  stepTokensMax: 2_048,
  blockTokens: 16,
  blockCount: 16_384,
  prefixCaching: true,
  overheadMs: 10,
  speed: { prefillTokensPerS: 20_000, decodeTokensPerS: 80, decodeTokensPerSTotal: 3_200 },
};

export class SimulatedFleet {
  readonly clock = new Clock();
  readonly fates: Fate[] = [];
  readonly endpoints: Endpoints;
  readonly admission: Admission;
  readonly #options: FleetOptions;
  readonly #engines: ReadonlyMap<string, Engine>;
  readonly #wakeAt = new Map<string, number>();
  readonly #waiting = new Map<Ticket, Fate>();
  readonly #running = new Map<string, { fate: Fate; ticket: Ticket; slot: Slot }>();
  #random: number;
  #ids = 0;

  constructor(options: FleetOptions) {
    this.#options = options;
    this.#random = options.seed ?? 1;
    const ids = Array.from({ length: options.replicas }, (_, index) => `r${index}`);
    this.#engines = new Map(ids.map((id, index) => [
      id,
      new Engine({
        ...ENGINE,
        ...options.engine,
        ...(index === 0 ? options.firstEngine : {}),
      }),
    ]));
    this.endpoints = new Endpoints({
      fixed: EMPTY_TABLE,
      now: () => this.clock.now,
      random: () => this.#next(),
      scheduling: {
        staleMs: 3 * (options.scrapeMs ?? SCRAPE_MS),
        targets: { kvUsage: 0.95, waiting: 8 },
        capacityOf: () => options.capacity,
      },
    });
    this.endpoints.apply(tableOf(ids));
    this.admission = new Admission({
      bounds: options.bounds,
      fullness: (model) => this.endpoints.fullness(model),
    });
    this.#scrape();
    this.#look();
  }

  /** Takes requests on, each at its time. */
  arrive(requests: Iterable<SimulatedRequest>): void {
    const iterator = requests[Symbol.iterator]();
    const next = () => {
      const { done, value } = iterator.next();
      if (done === true) return;
      this.clock.at(value.at, () => {
        this.#enter(value);
        next();
      });
    };
    next();
  }

  run(untilMs: number): void {
    this.clock.run(untilMs);
  }

  #enter(request: SimulatedRequest): void {
    const { clock, admission } = this;
    const fate: Fate = {
      request,
      outcome: "waits",
      letInAt: undefined,
      firstTokenAt: undefined,
      endedAt: undefined,
      replicaId: undefined,
      cachedTokens: 0,
    };
    this.fates.push(fate);
    const ticket: Ticket = {
      band: request.band,
      tenant: request.tenant,
      tokens: request.promptTokens + request.answerTokens,
      bytes: request.promptTokens * 4,
      enteredAt: clock.now,
    };
    const entered = admission.enter(MODEL, ticket, clock.now);
    if (entered.kind === "full") return this.#end(fate, "rejected");
    if (entered.kind === "let_in") return this.#send(ticket, fate);
    this.#waiting.set(ticket, fate);
    clock.at(clock.now + this.#options.bounds[ticket.band].waitMsMax, () => {
      if (!admission.leave(MODEL, ticket)) return;
      this.#waiting.delete(ticket);
      this.#end(fate, "expired");
    });
  }

  #pump(): void {
    for (const ticket of this.admission.pump(MODEL, this.clock.now)) {
      const fate = this.#waiting.get(ticket);
      if (fate === undefined) throw new Error("A request was let in that does not wait");
      this.#waiting.delete(ticket);
      this.#send(ticket, fate);
    }
  }

  #send(ticket: Ticket, fate: Fate): void {
    const { answerTokens } = fate.request;
    const { now } = this.clock;
    const prompt = fate.request.prompt();
    const blocks = blocksOfPrompt(prompt, ticket.tenant);
    const slot = this.endpoints.take(MODEL, {
      tried: new Set(),
      promptTokens: prompt.length,
      tokens: ticket.tokens,
      streamed: true,
      conversation: blocks.head,
      session: undefined,
      blocks,
      profile: "chat",
      weights: this.#options.weights ?? WEIGHTS_DEFAULT.chat,
    });
    if (!("endpoint" in slot)) throw new Error("There is no replica to send to");
    const { replicaId } = slot.endpoint;
    const engine = this.#engine(replicaId);
    const id = `q${this.#ids++}`;
    Object.assign(fate, { outcome: "runs", letInAt: now, replicaId });
    this.#running.set(id, { fate, ticket, slot });
    engine.submit({
      id,
      promptTokens: prompt,
      answer: new Answer({ seed: this.#ids, opening: "", naturalTokens: answerTokens }),
      tokensMax: answerTokens,
      tokensMin: 0,
      ignoreEnd: true,
      stop: [],
      stopTokenIds: [],
      includeStop: false,
      cacheSalt: "",
    }, now);
    this.#advance(replicaId, engine);
  }

  #advance(replicaId: string, engine: Engine): void {
    for (const output of engine.advance(this.clock.now)) this.#take(output);
    const next = engine.nextEventAt();
    if (next === undefined || this.#wakeAt.get(replicaId) === next) return;
    this.#wakeAt.set(replicaId, next);
    this.clock.at(next, () => {
      if (this.#wakeAt.get(replicaId) !== next) return;
      this.#wakeAt.delete(replicaId);
      this.#advance(replicaId, engine);
    });
  }

  #take({ id, at, finish }: EngineOutput): void {
    const running = this.#running.get(id);
    if (running === undefined) return;
    const { fate, ticket, slot } = running;
    if (fate.firstTokenAt === undefined) {
      fate.firstTokenAt = at;
      slot.firstToken();
    }
    if (finish === undefined) return;
    this.#running.delete(id);
    fate.cachedTokens = finish.cachedTokens;
    slot.cached(finish.cachedTokens);
    slot.judge({ kind: "success", retryAfterMs: 0 });
    slot[Symbol.dispose]();
    const tokens = finish.promptTokens + finish.generatedTokens;
    this.admission.end(MODEL, ticket, { tokens, now: this.clock.now });
    this.#end(fate, "served");
    this.#pump();
  }

  #end(fate: Fate, outcome: "served" | "rejected" | "expired"): void {
    if (fate.endedAt !== undefined) throw new Error("A request ended twice");
    fate.outcome = outcome;
    fate.endedAt = this.clock.now;
  }

  #scrape(): void {
    for (const [id, engine] of this.#engines) {
      const sample = readEngineSample(engine.metrics.render(engine.gauges));
      if (sample !== undefined) this.endpoints.observe(id, sample);
    }
    this.admission.lookAgain();
    this.#pump();
    this.clock.at(this.clock.now + (this.#options.scrapeMs ?? SCRAPE_MS), () => this.#scrape());
  }

  #look(): void {
    this.#pump();
    this.clock.at(this.clock.now + LOOK_MS, () => this.#look());
  }

  #engine(id: string): Engine {
    const engine = this.#engines.get(id);
    if (engine === undefined) throw new Error(`There is no engine ${id}`);
    return engine;
  }

  /** The same for the same seed. */
  #next(): number {
    this.#random = (Math.imul(this.#random, 1_664_525) + 1_013_904_223) >>> 0;
    return this.#random / 2 ** 32;
  }
}

function blocksOfPrompt(prompt: readonly number[], tenant: string): PromptBlocks {
  const text = prompt.map((token) => token.toString(36).padStart(4)).join("");
  const headEnd = Math.min(text.length, 2_048);
  return blocksOf({ text, headEnd }, { hash: h64Raw, salt: tenant, data: [] });
}

function tableOf(ids: readonly string[]) {
  return {
    revision: { term: 1, sequence: 1 },
    snapshot: true,
    snapshotEnd: true,
    models: [{
      name: MODEL,
      aliases: [],
      fallbacks: [],
      routingProfile: "chat",
      reason: "",
      wakeable: false,
      createdS: 0,
    }],
    removedModels: [],
    endpoints: ids.map((id) => candidate(id).endpoint),
    removedReplicas: [],
    settledNodes: [],
    settled: true,
  };
}
