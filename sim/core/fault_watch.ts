/** Decides when faults strike, by counting what the engine has done. */
import type { ProcessFault, RequestFault } from "./fault.ts";

/** Faults of the process that wait for their trigger; each strikes once. */
export class FaultWatch {
  readonly #pending: Set<ProcessFault>;
  #requests = 0;
  #tokens = 0;

  constructor(faults: readonly ProcessFault[]) {
    this.#pending = new Set(faults);
  }

  /** What strikes now that the engine has been ready for `elapsedMs`. */
  elapsed(elapsedMs: number): readonly ProcessFault[] {
    return this.#take("ready", elapsedMs);
  }

  /** How long after it was ready the engine must ask `elapsed` again; undefined for never. */
  nextElapsedMs(): number | undefined {
    const times = [...this.#pending].map(({ trigger }) => trigger)
      .filter((trigger) => trigger.on === "ready").map((trigger) => trigger.at);
    return times.length === 0 ? undefined : Math.min(...times);
  }

  request(): readonly ProcessFault[] {
    this.#requests += 1;
    return this.#take("requests", this.#requests);
  }

  tokens(count: number): readonly ProcessFault[] {
    this.#tokens += count;
    return this.#take("tokens", this.#tokens);
  }

  #take(on: "ready" | "requests" | "tokens", reached: number): ProcessFault[] {
    if (this.#pending.size === 0) return [];
    const struck = [...this.#pending].filter(({ trigger }) =>
      trigger.on === on && trigger.at <= reached
    );
    for (const fault of struck) this.#pending.delete(fault);
    return struck;
  }
}

/** What a request's faults make of its answer once `tokens` of it were generated. */
export type StreamAction =
  | { readonly kind: "continue" }
  | { readonly kind: "reset" }
  | { readonly kind: "error" }
  | { readonly kind: "end"; readonly done: boolean }
  | { readonly kind: "stall"; readonly ms: number };

/** The faults that the `serial`-th request (from 1) has. */
export function faultsOf(faults: readonly RequestFault[], serial: number): RequestFault[] {
  return faults.filter((fault) => serial % fault.every === 0);
}

/** The first fault that strikes at `tokens`, before they are sent. */
export function streamAction(faults: readonly RequestFault[], tokens: number): StreamAction {
  for (const fault of faults) {
    if (fault.kind === "error_first" && tokens === 0) return { kind: "error" };
    if (!("after_tokens" in fault) || tokens < fault.after_tokens) continue;
    switch (fault.kind) {
      case "cut_stream":
        return { kind: "reset" };
      case "error_after":
        return { kind: "error" };
      case "end_early":
        return { kind: "end", done: fault.done };
      case "stall":
        if (tokens === fault.after_tokens) return { kind: "stall", ms: fault.ms };
    }
  }
  return { kind: "continue" };
}
