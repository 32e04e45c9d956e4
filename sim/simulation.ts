/** One running simulated engine: its parts wired together, and the faults that befall the whole process. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { SimConfig } from "./config.ts";
import { Engine } from "./core/engine/engine.ts";
import type { EngineTotals } from "./core/engine/engine_metrics.ts";
import { statsLine } from "./core/engine/stats_line.ts";
import { type Fault, isProcessFault, isRequestFault, parseFault } from "./core/fault.ts";
import { FaultSyntaxError, type ProcessFault, type RequestFault } from "./core/fault.ts";
import { faultsOf, FaultWatch } from "./core/fault_watch.ts";
import type { Job } from "./core/openai/job.ts";
import type { ServedModel } from "./core/openai/model.ts";
import { RequestError } from "./core/openai/request_error.ts";
import { type Clock, Driver } from "./edge/driver.ts";
import { HttpServer } from "./edge/http_server.ts";
import { log } from "./edge/log.ts";
import { processMetrics } from "./edge/process_metrics.ts";
import { type EndReason, ENGINE_DEAD_MESSAGE, openRelay, type Relay } from "./edge/relay.ts";
import { type Host, routesOf } from "./edge/routes.ts";
import { engineOptionsOf, modelOf } from "./options_of.ts";

/** How often the log tells the engine's throughput, as often as vLLM's does. */
const STATS_MS = 10_000;
/** How long a stopping engine waits for clients to take what was written to them. */
const LAST_WORDS_MS = 1_000;

export interface SimulationOptions {
  readonly config: SimConfig;
  readonly version: string;
  readonly clock: Clock;
  /** Ends the process; `now` without a word to anybody. */
  readonly exit: (code: number, how: "now" | "after_log") => void;
}

export class Simulation implements Host, AsyncDisposable {
  readonly model: ServedModel;
  readonly version: string;
  readonly created = Math.floor(Date.now() / 1000);
  readonly #options: SimulationOptions;
  readonly #engine: Engine;
  readonly #driver: Driver;
  readonly #server: HttpServer;
  readonly #watch: FaultWatch;
  readonly #requestFaults: readonly RequestFault[];
  readonly #relays = new Set<Relay>();
  readonly #timers = new Set<ReturnType<typeof setTimeout>>();
  #state: "serving" | "draining" | "dead" = "serving";
  #readyAt = 0;
  #requests = 0;
  #healthStatus = 200;
  #listedNames: readonly string[];
  #ignoresSigterm = false;
  #hangsAtFirstRequest = false;
  #emptied: (() => void) | undefined;

  constructor(options: SimulationOptions) {
    const { config } = options;
    this.#options = options;
    this.version = options.version;
    this.model = modelOf(config);
    this.#listedNames = this.model.names;
    this.#engine = new Engine(engineOptionsOf(config, this.model));
    this.#watch = new FaultWatch(config["sim-fault"].filter(isProcessFault));
    this.#requestFaults = config["sim-fault"].filter(isRequestFault);
    this.#driver = new Driver({
      engine: this.#engine,
      clock: options.clock,
      onTokens: (count) => this.#strike(this.#watch.tokens(count)),
      stepwise: config["sim-fault"].length > 0 || config["sim-allow-request-faults"],
    });
    this.#server = new HttpServer({
      routes: routesOf(this),
      apiKeys: config["api-key"],
      accessLog: !config["disable-uvicorn-access-log"],
      requestIdHeaders: config["enable-request-id-headers"],
    });
  }

  get ignoresSigterm(): boolean {
    return this.#ignoresSigterm;
  }

  /** Opens the port; from here the engine is ready. Resolves to the port. */
  async serve(): Promise<number> {
    const port = await this.#server.listen(this.#options.config.host, this.#options.config.port);
    this.#readyAt = this.#options.clock.now();
    this.#watchTime();
    this.#logStats(this.#engine.metrics.totals);
    return port;
  }

  /** Lets the engine stand still from its first request on, as ranks do that cannot reach each other. */
  hangAtFirstRequest(): void {
    this.#hangsAtFirstRequest = true;
  }

  /** Stops as vLLM does on SIGTERM: at once, or after what runs is done, for `drainMs` at most. */
  async stop(drainMs: number): Promise<void> {
    this.#state = "draining";
    const closed = this.#server.stopListening();
    if (drainMs > 0 && this.#relays.size > 0) await this.#drained(drainMs);
    let serial = 0;
    for (const relay of [...this.#relays]) {
      // Real engines end streams with [DONE] or without, as it happens; here every second one has it.
      relay.end(serial % 2 === 0 ? "shutdown_with_done" : "shutdown");
      serial += 1;
    }
    // Last words get out before the connections are cut.
    if (this.#relays.size > 0) await this.#drained(LAST_WORDS_MS);
    this.#server.closeConnections();
    this.#driver[Symbol.dispose]();
    this.#clearTimers();
    await closed;
  }

  /** Ends everything and cuts every connection. For tests, and for a second signal. */
  async [Symbol.asyncDispose](): Promise<void> {
    const stopped = this.stop(0);
    this.#server.closeConnections();
    await stopped;
  }

  health(): number {
    return this.#state === "serving" ? this.#healthStatus : 503;
  }

  listedNames(): readonly string[] {
    return this.#listedNames;
  }

  load(): number {
    return this.#relays.size;
  }

  metrics(): string {
    const process = processMetrics(this.created);
    if (this.#options.config["disable-log-stats"]) return process;
    return this.#engine.metrics.render(this.#engine.gauges) + process;
  }

  accept(job: Job, request: IncomingMessage, response: ServerResponse): void {
    if (this.#state === "draining") {
      response.setHeader("connection", "close");
      throw new RequestError(503, "The server is shutting down and takes no new requests.");
    }
    if (this.#state === "dead") throw new RequestError(500, ENGINE_DEAD_MESSAGE);
    this.#requests += 1;
    if (this.#hangsAtFirstRequest) this.#driver.hang(0);
    const asked = this.#askedFaults(job, request);
    const faults = [
      ...asked.filter(isRequestFault),
      ...faultsOf(this.#requestFaults, this.#requests),
    ];
    const refusal = faults.find((fault) => fault.kind === "http_error");
    if (refusal !== undefined) throw new RequestError(refusal.status, "A fault was asked for.");
    const relay = openRelay({
      driver: this.#driver,
      job,
      response,
      faults,
      onClose: (closed) => this.#forget(closed),
    });
    this.#relays.add(relay);
    relay.start();
    this.#strike([...asked.filter(isProcessFault), ...this.#watch.request()]);
  }

  #forget(relay: Relay): void {
    this.#relays.delete(relay);
    if (this.#relays.size === 0) this.#emptied?.();
  }

  #askedFaults(job: Job, request: IncomingMessage): readonly Fault[] {
    if (!this.#options.config["sim-allow-request-faults"]) return [];
    const header = request.headers["x-sim-fault"];
    const specs = [job.fault, typeof header === "string" ? header : undefined]
      .filter((spec) => spec !== undefined).flatMap((spec) => spec.split(";"));
    try {
      return specs.map(parseFault);
    } catch (error) {
      if (!(error instanceof FaultSyntaxError)) throw error;
      throw new RequestError(400, error.message, "sim_fault");
    }
  }

  #logStats(before: EngineTotals): void {
    if (this.#options.config["disable-log-stats"]) return;
    this.#later(() => {
      const after = this.#engine.metrics.totals;
      const now = { ...this.#engine.gauges, seconds: STATS_MS / 1000 };
      const line = statsLine(before, after, now);
      if (line !== undefined) log("INFO", "stats", line);
      this.#logStats(after);
    }, STATS_MS);
  }

  #watchTime(): void {
    this.#strike(this.#watch.elapsed(this.#options.clock.now() - this.#readyAt));
    const next = this.#watch.nextElapsedMs();
    if (next === undefined) return;
    this.#later(() => this.#watchTime(), this.#readyAt + next - this.#options.clock.now());
  }

  #strike(faults: readonly ProcessFault[]): void {
    for (const fault of faults) {
      log("WARNING", "fault", `${fault.kind} strikes`);
      switch (fault.kind) {
        case "hang":
          this.#driver.hang(fault.for_ms);
          break;
        case "crash":
          this.#die(fault.code, fault.linger_ms);
          break;
        case "kill":
          this.#options.exit(fault.code, "now");
          break;
        case "health_lies":
          this.#healthStatus = fault.status;
          break;
        case "wrong_model":
          this.#listedNames = [fault.name];
          break;
        case "ignore_sigterm":
          this.#ignoresSigterm = true;
          break;
        default:
          fault satisfies never;
      }
    }
  }

  #die(code: number, lingerMs: number): void {
    this.#state = "dead";
    log("ERROR", "core", "EngineCore encountered a fatal error.");
    log("ERROR", "core", `vllm.v1.engine.exceptions.EngineDeadError: ${ENGINE_DEAD_MESSAGE}`);
    for (const relay of [...this.#relays]) relay.end("engine_dead" satisfies EndReason);
    this.#later(() => this.#options.exit(code, "after_log"), lingerMs);
  }

  #drained(withinMs: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#emptied = resolve;
    this.#later(resolve, withinMs);
    return promise;
  }

  #later(act: () => void, ms: number): void {
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      act();
    }, Math.max(0, ms));
    this.#timers.add(timer);
  }

  #clearTimers(): void {
    for (const timer of this.#timers) clearTimeout(timer);
    this.#timers.clear();
  }
}
