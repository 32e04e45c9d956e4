/**
 * Asks attached engines, through the address that routers would use, for health, the model's name and
 * one token. What an agent says of its engine makes nobody an endpoint; this does.
 */
import { parseAddress } from "@heddle/common/address";
import { probeEngine } from "@heddle/common/engine/probe";
import type { ProbeOutcome } from "@heddle/common/engine/probe_outcome";
import { logger } from "@heddle/common/log";
import { spawnTask } from "@heddle/common/task";
import { attachedAddress, proofSubject } from "../../core/attach/attached.ts";
import { proofDue } from "../../core/attach/publication.ts";
import type { AttachedProved } from "../../core/attach/observe.ts";
import type { World } from "../../core/world.ts";

const log = logger("control", "attach");

/** A first token may take the compilation of a kernel. */
const TOKEN_MS_MAX = 60_000;

/** Engines that are asked at once. The others' next claims ask again. */
const AT_ONCE_MAX = 16;

/** Of so many engines it is remembered what was said. */
const SAID_MAX = 1_000;

export interface ProverOptions {
  readonly loop: {
    dispatch(event: AttachedProved): Promise<void>;
    world(): World;
    now(): number;
  };
  readonly signal: AbortSignal;
}

export class Prover {
  readonly #options: ProverOptions;
  readonly #asked = new Set<string>();
  /** What was last said of engines that do not serve yet. */
  readonly #said = new Map<string, string>();

  constructor(options: ProverOptions) {
    this.#options = options;
  }

  /** Asks the engine, if that is due, without being waited for. One at a time for each engine. */
  consider(id: string): void {
    const { loop, signal } = this.#options;
    if (signal.aborted || this.#asked.has(id) || this.#asked.size >= AT_ONCE_MAX) return;
    const member = proofDue(loop.world(), id, loop.now());
    const address = member === undefined ? undefined : attachedAddress(member);
    if (member === undefined || address === undefined) return;
    this.#asked.add(id);
    const { model, apiKey } = member.claim;
    const ask = async () => {
      try {
        const outcome = inOurWords(
          await probeEngine({
            address: parseAddress(address),
            model,
            apiKey,
            token: true,
            tokenMsMax: TOKEN_MS_MAX,
            signal,
          }),
        );
        if (signal.aborted) return;
        this.#say(id, address, outcome);
        const subject = proofSubject(member);
        await loop.dispatch({ kind: "attached_proved", engine: id, subject, outcome });
      } finally {
        this.#asked.delete(id);
      }
    };
    spawnTask("ask an attached engine", ask);
  }

  #say(engine: string, address: string, outcome: ProbeOutcome): void {
    if (outcome.kind === "ready") {
      this.#said.delete(engine);
      return log.info("Attached engine serves", { engine, address });
    }
    const { why } = outcome;
    if (this.#said.get(engine) === why) return;
    // Engines that never served and went away leave their words here; so many are enough.
    if (this.#said.size >= SAID_MAX) this.#said.clear();
    this.#said.set(engine, why);
    log.warning("Attached engine does not serve yet", { engine, address, why });
  }
}

// The probe's own words are for an engine whose key Heddle made.
function inOurWords(outcome: ProbeOutcome): ProbeOutcome {
  if (outcome.kind !== "wrong" || outcome.reason !== "wrong_key") return outcome;
  return { ...outcome, why: "it refuses the key: set HEDDLE_ENGINE_API_KEY to the engine's own" };
}
