/**
 * Faults that the simulated engine can be told to have.
 *
 * A fault is written `KIND` or `KIND:key=value,key=value`. Those of the process have a trigger (`at_ms` since it was
 * ready, `after_requests`, `after_tokens`; without one, as soon as it is ready); those of a request say when in its
 * answer they strike, and may strike only every n-th request.
 */

/** When a fault of the process strikes. */
export type Trigger =
  | { readonly on: "ready"; readonly at: number }
  | { readonly on: "requests"; readonly at: number }
  | { readonly on: "tokens"; readonly at: number };

export type LoadFault =
  | { readonly kind: "slow_load"; readonly ms: number }
  | { readonly kind: "never_ready" }
  | {
    readonly kind: "die_loading";
    readonly at_ms: number;
    readonly code: number;
    readonly cause: DeathCause;
  };

export type ProcessFault =
  | { readonly kind: "hang"; readonly trigger: Trigger; readonly for_ms: number }
  | {
    readonly kind: "crash";
    readonly trigger: Trigger;
    readonly code: number;
    readonly linger_ms: number;
  }
  | { readonly kind: "kill"; readonly trigger: Trigger; readonly code: number }
  | { readonly kind: "health_lies"; readonly trigger: Trigger; readonly status: number }
  | { readonly kind: "wrong_model"; readonly trigger: Trigger; readonly name: string }
  | { readonly kind: "ignore_sigterm"; readonly trigger: Trigger };

export type RequestFault =
  | { readonly kind: "cut_stream"; readonly after_tokens: number; readonly every: number }
  | { readonly kind: "error_first"; readonly every: number }
  | { readonly kind: "error_after"; readonly after_tokens: number; readonly every: number }
  | {
    readonly kind: "end_early";
    readonly after_tokens: number;
    readonly every: number;
    readonly done: boolean;
  }
  | {
    readonly kind: "stall";
    readonly after_tokens: number;
    readonly every: number;
    readonly ms: number;
  }
  | { readonly kind: "http_error"; readonly status: number; readonly every: number };

export type Fault = LoadFault | ProcessFault | RequestFault;

/** Last words of an engine that dies while it loads, as real ones write them. */
export const DEATH_CAUSES = {
  oom: "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.96 GiB.",
  memory_taken:
    "ValueError: Free memory on device (10.2/79.1 GiB) on startup is less than desired GPU memory utilization (0.92, 72.8 GiB).",
  no_cache_memory:
    "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.",
  architecture:
    "ValueError: Model architectures ['SimulatedForCausalLM'] are not supported for now.",
  nccl:
    "torch.distributed.DistBackendError: NCCL error: unhandled system error (run with NCCL_DEBUG=INFO for details)",
  disk: "OSError: [Errno 28] No space left on device (os error 28)",
  driver: "RuntimeError: The NVIDIA driver on your system is too old (found version 11040).",
} as const;
export type DeathCause = keyof typeof DEATH_CAUSES;

/** One line for each kind, for --help and the documentation. */
export const FAULT_HELP: readonly string[] = [
  "slow_load:ms=N            loading takes N ms more",
  "never_ready               loads for ever; the port stays closed",
  "die_loading:at_ms=N,code=N,cause=CAUSE   exits while loading; CAUSE: " +
  Object.keys(DEATH_CAUSES).join(", "),
  "hang:TRIGGER,for_ms=N     takes requests, gives no tokens; health stays 200 (for_ms 0: for ever)",
  "crash:TRIGGER,code=N,linger_ms=N   as when vLLM's core dies: error in every stream, health 503, exit",
  "kill:TRIGGER,code=N       the process is gone at once, as by SIGKILL (code 137)",
  "health_lies:TRIGGER,status=N   /health answers N while everything works",
  "wrong_model:TRIGGER,name=X     /v1/models lists X only",
  "ignore_sigterm            SIGTERM and SIGINT do nothing",
  "cut_stream:after_tokens=N,every=N    resets the connection after N tokens",
  "error_first:every=N       200, then an error as the first event",
  "error_after:after_tokens=N,every=N   an error event after N tokens, then [DONE]",
  "end_early:after_tokens=N,every=N,done=true|false   ends cleanly without finish_reason",
  "stall:after_tokens=N,every=N,ms=N    sends nothing for N ms after N tokens",
  "http_error:status=N,every=N          refuses with status N",
];

/** Thrown for a fault that cannot be understood; the message says what was expected. */
export class FaultSyntaxError extends Error {}

/** Parameters of one fault as they were written, each of which must be used. */
class Parameters {
  readonly #left: Map<string, string>;
  readonly #spec: string;

  constructor(spec: string, text: string) {
    this.#spec = spec;
    this.#left = new Map();
    for (const pair of text.split(",").filter((part) => part.trim() !== "")) {
      const at = pair.indexOf("=");
      if (at <= 0) throw this.#error(`"${pair}" is not key=value`);
      this.#left.set(pair.slice(0, at).trim(), pair.slice(at + 1).trim());
    }
  }

  text(key: string, fallback: string): string {
    const value = this.#left.get(key);
    this.#left.delete(key);
    return value ?? fallback;
  }

  number(key: string, fallback: number): number {
    const text = this.text(key, String(fallback));
    if (!/^\d{1,12}$/.test(text)) throw this.#error(`${key} must be a whole number, not "${text}"`);
    return Number(text);
  }

  every(): number {
    return Math.max(1, this.number("every", 1));
  }

  oneOf<T extends string>(key: string, allowed: readonly T[], fallback: T): T {
    const text = this.text(key, fallback);
    const found = allowed.find((value) => value === text);
    if (found !== undefined) return found;
    throw this.#error(`${key} must be one of ${allowed.join(", ")}, not "${text}"`);
  }

  trigger(): Trigger {
    const triggers: Trigger[] = [];
    if (this.#left.has("at_ms")) triggers.push({ on: "ready", at: this.number("at_ms", 0) });
    if (this.#left.has("after_requests")) {
      triggers.push({ on: "requests", at: this.number("after_requests", 1) });
    }
    if (this.#left.has("after_tokens")) {
      triggers.push({ on: "tokens", at: this.number("after_tokens", 1) });
    }
    if (triggers.length > 1) throw this.#error("it has more than one trigger");
    return triggers[0] ?? { on: "ready", at: 0 };
  }

  finish<T extends Fault>(fault: T): T {
    const [unknown] = this.#left.keys();
    if (unknown !== undefined) throw this.#error(`${fault.kind} has no parameter "${unknown}"`);
    return fault;
  }

  #error(why: string): FaultSyntaxError {
    return new FaultSyntaxError(`fault "${this.#spec}": ${why}`);
  }
}

const CAUSES: readonly DeathCause[] = [
  ...["oom", "memory_taken", "no_cache_memory"] as const,
  ...["architecture", "nccl", "disk", "driver"] as const,
];

const READERS: Readonly<Record<Fault["kind"], (p: Parameters) => Fault>> = {
  slow_load: (p) => ({ kind: "slow_load", ms: p.number("ms", 10_000) }),
  never_ready: () => ({ kind: "never_ready" }),
  die_loading: (p) => ({
    kind: "die_loading",
    at_ms: p.number("at_ms", 300),
    code: p.number("code", 1),
    cause: p.oneOf("cause", CAUSES, "oom"),
  }),
  hang: (p) => ({ kind: "hang", trigger: p.trigger(), for_ms: p.number("for_ms", 0) }),
  crash: (p) => ({
    kind: "crash",
    trigger: p.trigger(),
    code: p.number("code", 1),
    linger_ms: p.number("linger_ms", 200),
  }),
  kill: (p) => ({ kind: "kill", trigger: p.trigger(), code: p.number("code", 137) }),
  health_lies: (p) => ({
    kind: "health_lies",
    trigger: p.trigger(),
    status: p.number("status", 503),
  }),
  wrong_model: (p) => ({
    kind: "wrong_model",
    trigger: p.trigger(),
    name: p.text("name", "another-model"),
  }),
  ignore_sigterm: () => ({ kind: "ignore_sigterm", trigger: { on: "ready", at: 0 } }),
  cut_stream: (p) => ({
    kind: "cut_stream",
    after_tokens: p.number("after_tokens", 3),
    every: p.every(),
  }),
  error_first: (p) => ({ kind: "error_first", every: p.every() }),
  error_after: (p) => ({
    kind: "error_after",
    after_tokens: p.number("after_tokens", 3),
    every: p.every(),
  }),
  end_early: (p) => ({
    kind: "end_early",
    after_tokens: p.number("after_tokens", 3),
    every: p.every(),
    done: p.oneOf("done", ["true", "false"], "true") === "true",
  }),
  stall: (p) => ({
    kind: "stall",
    after_tokens: p.number("after_tokens", 3),
    every: p.every(),
    ms: p.number("ms", 10_000),
  }),
  http_error: (p) => ({
    kind: "http_error",
    status: p.number("status", 500),
    every: p.every(),
  }),
};

function isKind(name: string): name is Fault["kind"] {
  return Object.hasOwn(READERS, name);
}

/** Reads one fault. @throws FaultSyntaxError */
export function parseFault(spec: string): Fault {
  const text = spec.trim();
  const at = text.indexOf(":");
  const kind = at < 0 ? text : text.slice(0, at);
  if (!isKind(kind)) {
    const known = Object.keys(READERS).join(", ");
    throw new FaultSyntaxError(`fault "${spec}": no kind "${kind}"; there are ${known}`);
  }
  const parameters = new Parameters(spec, at < 0 ? "" : text.slice(at + 1));
  return parameters.finish(READERS[kind](parameters));
}

export function isLoadFault(fault: Fault): fault is LoadFault {
  return fault.kind === "slow_load" || fault.kind === "never_ready" || fault.kind === "die_loading";
}

export function isProcessFault(fault: Fault): fault is ProcessFault {
  return "trigger" in fault;
}

export function isRequestFault(fault: Fault): fault is RequestFault {
  return "every" in fault;
}
