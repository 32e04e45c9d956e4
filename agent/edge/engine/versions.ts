/**
 * Which of the configured engines really run. A program that is there need not work: an upgrade of
 * something else can take a library away from it. So each is started for its version, now and then
 * again, and only what answered is told to control.
 */
import { join } from "node:path";
import { writeFileAtomic } from "@heddle/common/atomic_file";
import { logger } from "@heddle/common/log";
import { delay } from "@heddle/common/task";
import { errorText, HeddleError } from "@heddle/proto/error";
import { engineVersion } from "../../core/engine_version.ts";
import { redactLine } from "../../core/redact_line.ts";
import { shellEnv } from "../../core/shell_env.ts";
import type { InstalledEngine } from "../../engines/engine.ts";
import { probeAsUnit } from "../launcher/probe_unit.ts";
import { cannotRun } from "../launcher/shim.ts";

const log = logger("agent", "engines");

/** A Python engine reads gigabytes of libraries before it says its version. */
export const PROBE_SECONDS_MAX = 120;
const RECHECK_MS = 10 * 60_000;
/** What did not work may be repaired any moment. */
const RECHECK_FAILED_MS = 60_000;
const WORDS_MAX = 500;

/** An engine as the configuration names it. */
export interface NamedEngine {
  readonly name: string;
  readonly path: string;
  readonly versionArgs: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

export interface EngineProblem {
  readonly reason: "engine_not_working";
  readonly detail: string;
  readonly remedy: string;
}

export interface EngineSurvey {
  /** False: nothing has been looked at yet. */
  readonly probed: boolean;
  readonly engines: readonly InstalledEngine[];
  readonly problems: readonly EngineProblem[];
}

interface Asked {
  /** Of the engine in the configuration. */
  readonly index: number;
  readonly signal: AbortSignal;
}

type Found =
  | { readonly kind: "works"; readonly engine: InstalledEngine }
  | { readonly kind: "fails"; readonly problem: EngineProblem };

export interface EngineVersionsOptions {
  readonly shim: string;
  /** The user that engines run as, where they are units; left out: they run as the agent does. */
  readonly unitUser?: string;
  readonly stateDirectory: string;
  /** What is to be asked; read anew for each look. */
  readonly engines: () => readonly NamedEngine[];
  /** How long one may take to say its version. */
  readonly secondsMax: number;
  /** Called after a look that changed something. */
  readonly onChange: () => void;
}

export class EngineVersions {
  readonly #options: EngineVersionsOptions;
  readonly #looked = Promise.withResolvers<void>();
  #wake = new AbortController();
  #survey: EngineSurvey = { probed: false, engines: [], problems: [] };

  constructor(options: EngineVersionsOptions) {
    this.#options = options;
  }

  get survey(): EngineSurvey {
    return this.#survey;
  }

  /** Resolves after the first look. */
  get looked(): Promise<void> {
    return this.#looked.promise;
  }

  /** Looks again now, because something was installed. */
  again(): void {
    this.#wake.abort();
  }

  /** Looks now and again and again until `signal` aborts; what is being asked then is ended. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.look(signal);
      const failing = this.#survey.problems.length > 0;
      const wait = AbortSignal.any([signal, this.#wake.signal]);
      await delay(failing ? RECHECK_FAILED_MS : RECHECK_MS, wait);
      if (this.#wake.signal.aborted) this.#wake = new AbortController();
    }
  }

  /**
   * One look at every engine, one after the other: they read a lot. When `signal` aborts, the engine
   * that is being asked is ended, and what was known stays.
   */
  async look(signal: AbortSignal): Promise<void> {
    const engines: InstalledEngine[] = [];
    const problems: EngineProblem[] = [];
    for (const [index, named] of this.#options.engines().entries()) {
      const found = await this.#probe(named, { index, signal });
      if (signal.aborted) return;
      if (found.kind === "works") engines.push(found.engine);
      else problems.push(found.problem);
    }
    const survey = { probed: true, engines, problems };
    this.#looked.resolve();
    if (JSON.stringify(survey) === JSON.stringify(this.#survey)) return;
    this.#survey = survey;
    for (const { name, version, path } of engines) {
      log.info("Engine works", { name, version, path });
    }
    for (const { detail, remedy } of problems) log.warning(detail, { remedy });
    this.#options.onChange();
  }

  async #probe(named: NamedEngine, asked: Asked): Promise<Found> {
    const { name, path } = named;
    const fails = (what: string, remedy: string): Found => ({
      kind: "fails",
      problem: {
        reason: "engine_not_working",
        detail: `Engine ${name} at ${path} does not work: ${what}`,
        remedy,
      },
    });
    let output: string;
    try {
      output = await this.#run(named, asked);
    } catch (error) {
      return fails(errorText(error), "See that the agent may run what runs engines");
    }
    const [, said = "", code = ""] = /^([^]*?)\n#exit (\d*)\n?$/.exec(output) ?? [];
    const words = lastWords(said || output);
    if (output.includes("\n#timeout\n") || code === "") {
      return fails(
        `it did not say its version within ${this.#options.secondsMax} s${words}`,
        `Run ${path} ${named.versionArgs.join(" ")} by hand and see where it hangs`,
      );
    }
    if (code !== "0") {
      return fails(
        `it ended with code ${code}${words}`,
        code === "127" || code === "126"
          ? "Correct its path in agent.yaml, or install it there"
          : "Repair its installation; the words are its own",
      );
    }
    const version = engineVersion(said);
    if (version === undefined) {
      return fails(`it does not say its version${words}`, "Set version_args in agent.yaml");
    }
    return { kind: "works", engine: { name, path, version } };
  }

  async #run(named: NamedEngine, { index, signal }: Asked): Promise<string> {
    const { shim, unitUser, stateDirectory, secondsMax } = this.#options;
    const environment = join(stateDirectory, `engine-${index}.env`);
    if (unitUser !== undefined) {
      return await probeAsUnit({
        ...named,
        user: unitUser,
        envFile: environment,
        secondsMax,
        signal,
      });
    }
    await writeFileAtomic(environment, shellEnv(named.env));
    let output: Deno.CommandOutput;
    try {
      // Spawned, because only then `detached` counts: the shim ends what it started by its group.
      const child = new Deno.Command(shim, {
        args: ["probe", environment, String(secondsMax), named.path, ...named.versionArgs],
        clearEnv: true,
        // It ends when this end of it closes, also when the agent is killed.
        stdin: "piped",
        stdout: "piped",
        stderr: "piped",
        detached: true,
      }).spawn();
      output = await outputUntil(child, signal);
    } catch (error) {
      throw cannotRun(shim, error);
    }
    // It ends by its own signal; an exit code means that it did not come to run the engine.
    if (output.signal === null) {
      throw new HeddleError("system", new TextDecoder().decode(output.stderr).trim());
    }
    return new TextDecoder().decode(output.stdout);
  }
}

async function outputUntil(
  child: Deno.ChildProcess,
  signal: AbortSignal,
): Promise<Deno.CommandOutput> {
  // The shim may have ended already, and then there is nothing to close.
  const end = () => void child.stdin.close().catch(() => {});
  signal.addEventListener("abort", end);
  try {
    if (signal.aborted) end();
    return await child.output();
  } finally {
    signal.removeEventListener("abort", end);
    if (!signal.aborted) end();
  }
}

// The last line of a failure says what failed; those before it say where.
function lastWords(output: string): string {
  const lines = output.split("\n").map((line) => line.trim()).filter((line) => line !== "");
  const words = redactLine(lines.slice(-3).join(" | "), []).slice(-WORDS_MAX);
  return words === "" ? "" : `: ${words}`;
}
