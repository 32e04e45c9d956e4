/** One accepted request on its way from the engine to its client, with the faults that strike it. */
import type { ServerResponse } from "node:http";
import type { EngineOutput } from "../core/engine/engine.ts";
import type { RequestFault } from "../core/fault.ts";
import { streamAction } from "../core/fault_watch.ts";
import type { Job } from "../core/openai/job.ts";
import { errorBody } from "../core/openai/request_error.ts";
import type { Driver, Running } from "./driver.ts";
import {
  endEvents,
  resetConnection,
  sendEvents,
  sendJson,
  sendTypedEvents,
  sendWhole,
  startEvents,
} from "./reply.ts";

/** What vLLM tells a client whose request died with the engine. */
export const ENGINE_DEAD_MESSAGE =
  "EngineCore encountered an issue. See stack trace (above) for the root cause.";

/** How the server ends a request that has not ended by itself. */
export type EndReason = "engine_dead" | "shutdown_with_done" | "shutdown";

/** A request that is being answered. */
export interface Relay {
  /** Hands the job to the engine. */
  start(): void;
  end(reason: EndReason): void;
}

export interface RelayOptions {
  readonly driver: Driver;
  readonly job: Job;
  readonly response: ServerResponse;
  readonly faults: readonly RequestFault[];
  /** Called once, when the client has its answer or is gone. */
  readonly onClose: (relay: Relay) => void;
}

/** Relays what the engine makes of the job, once started, until it ends or the client leaves. */
export function openRelay(options: RelayOptions): Relay {
  return new ActiveRelay(options);
}

class ActiveRelay implements Relay {
  readonly #options: RelayOptions;
  #running: Running | undefined;
  #unfinished: number;
  #tokens = 0;
  #over = false;
  #stalled: EngineOutput[] | undefined;
  #stallTimer: ReturnType<typeof setTimeout> | undefined;

  constructor(options: RelayOptions) {
    this.#options = options;
    this.#unfinished = options.job.sequences.length;
  }

  start(): void {
    const { driver, job, response } = this.#options;
    // "close" comes after a whole answer and after a client that left; for the engine both mean the same.
    response.once("close", () => this.#close());
    if (job.stream) startEvents(response);
    if (this.#strike() === "over") return;
    this.#running = driver.submit(job.sequences, (outputs) => this.#take(outputs));
  }

  end(reason: EndReason): void {
    if (this.#over) return;
    const { job, response } = this.#options;
    if (reason === "engine_dead") return this.#fail();
    if (job.stream) this.#finish(() => endEvents(response, { done: reason !== "shutdown" }));
    else this.#finish(() => resetConnection(response));
  }

  #take(outputs: readonly EngineOutput[]): void {
    if (this.#stalled !== undefined) {
      this.#stalled.push(...outputs);
      return;
    }
    const events: object[] = [];
    for (const [index, output] of outputs.entries()) {
      if (output.token !== undefined) this.#tokens += 1;
      events.push(...this.#options.job.answer.push(output));
      if (output.finish !== undefined) this.#unfinished -= 1;
      if (this.#unfinished === 0) break;
      if (this.#options.faults.length === 0) continue;
      this.#send(events.splice(0));
      const struck = this.#strike();
      if (struck === "over") return;
      if (struck === "stalled") {
        this.#stalled = outputs.slice(index + 1);
        return;
      }
    }
    this.#send(events);
    if (this.#unfinished === 0) this.#complete();
  }

  #send(events: readonly object[]): void {
    const { job, response } = this.#options;
    if (!job.stream || this.#over) return;
    if (job.typed === undefined) sendEvents(response, events);
    else sendTypedEvents(response, events);
  }

  #complete(): void {
    const { job, response } = this.#options;
    this.#finish(() => {
      if (!job.stream) return sendWhole(response, job.answer.whole());
      if (job.typed === undefined) sendEvents(response, job.answer.closing());
      else sendTypedEvents(response, job.answer.closing());
      endEvents(response, { done: job.typed?.done ?? true });
    });
  }

  /** Lets a fault do what it does at this point of the answer. */
  #strike(): "unharmed" | "over" | "stalled" {
    const { faults, job, response } = this.#options;
    const action = streamAction(faults, this.#tokens);
    switch (action.kind) {
      case "continue":
        return "unharmed";
      case "stall":
        this.#stalled = [];
        this.#stallTimer = setTimeout(() => this.#goOn(), action.ms);
        return "stalled";
      case "reset":
        this.#finish(() => resetConnection(response));
        return "over";
      case "error":
        this.#fail();
        return "over";
      case "end":
        this.#finish(() => {
          if (job.stream) endEvents(response, { done: action.done });
          else resetConnection(response);
        });
        return "over";
    }
  }

  #goOn(): void {
    this.#stallTimer = undefined;
    const outputs = this.#stalled ?? [];
    this.#stalled = undefined;
    this.#take(outputs);
  }

  /** An error of the engine: in the stream once there is one, else as the answer. */
  #fail(): void {
    const { job, response } = this.#options;
    const body = errorBody(500, ENGINE_DEAD_MESSAGE);
    this.#running?.fail();
    this.#finish(() => {
      if (!job.stream) return sendJson(response, 500, body);
      sendEvents(response, [body]);
      endEvents(response, { done: true });
    });
  }

  #finish(lastWords: () => void): void {
    if (this.#over) return;
    this.#over = true;
    lastWords();
    this.#release();
  }

  #release(): void {
    clearTimeout(this.#stallTimer);
    this.#running?.[Symbol.dispose]();
  }

  #close(): void {
    this.#over = true;
    this.#release();
    this.#options.onClose(this);
  }
}
