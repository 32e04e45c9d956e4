/**
 * The launcher for machines with systemd: each process is a transient unit. It has its own control
 * group, so it is killed whole whatever it forks; it is no child of the agent's, so nothing that
 * becomes of the agent reaches it; and systemd itself writes down how it ended.
 */
import { dirname, join } from "node:path";
import { writeFileAtomic } from "@heddle/common/atomic_file";
import { logger } from "@heddle/common/log";
import { delay } from "@heddle/common/task";
import { HeddleError } from "@heddle/proto/error";
import { type ProcessUsage, readShimUsage, readUnitUsage } from "../../core/host/process_usage.ts";
import type { ExitRecord, ProcessRef } from "../../core/shard/shard.ts";
import {
  ENGINES,
  handleOf,
  startArguments,
  type UnitKind,
  unitOf,
  unitsOf,
} from "../../core/systemd/engine_unit.ts";
import { environmentFile } from "../../core/systemd/env_file.ts";
import {
  decodeExitRecord,
  EXIT_RECORD_BYTES,
  startFailure,
} from "../../core/systemd/exit_record.ts";
import { logKeeperArguments } from "../../core/systemd/log_keeper.ts";
import { environmentFileOf, parseShow, pidIn, type Properties } from "../../core/systemd/show.ts";
import type { Launcher, LaunchRequest, LiveMember, LiveProcess, Signal } from "./launcher.ts";
import { callShim, readMembers } from "./shim.ts";
import { callSystemd, SYSTEMCTL, SYSTEMD_RUN } from "./systemctl.ts";

const log = logger("agent", "launcher");

/** Between looks for an exit record. */
const EXIT_POLL_MS = 250;
/** Between looks at the unit itself, which may end without one: the disk was full. */
const UNIT_POLL_MS = 3_000;

/** From a failed start to its record, which systemd writes when it has told of the failure. */
const RECORD_MS_MAX = 10_000;
const RECORD_POLL_MS = 20;

const ENV_FILE = "env";
const LOG_FILE = "log";
const EXIT_FILE = "exit";

const PROPERTIES = [
  "Id",
  "LoadState",
  "ActiveState",
  "SubState",
  "MainPID",
  "InvocationID",
  "EnvironmentFiles",
];

const USAGE_PROPERTIES = ["Id", "LoadState", "CPUUsageNSec", "MemoryCurrent"];

export interface SystemdLauncherOptions {
  /** The agent's state directory: only what runs below it is ours. */
  readonly stateDirectory: string;
  /** The user that engines run as. */
  readonly user: string;
  /** Absolute path of heddle-shim, which reads control groups for us. */
  readonly shim: string;
  /** What it starts. @default engines */
  readonly kind?: UnitKind;
}

export class SystemdLauncher implements Launcher {
  readonly #options: SystemdLauncherOptions;
  readonly #kind: UnitKind;

  constructor(options: SystemdLauncherOptions) {
    this.#options = options;
    this.#kind = options.kind ?? ENGINES;
  }

  async start(request: LaunchRequest): Promise<ProcessRef> {
    const { directory, handle, name, argv, env } = request;
    if (!argv[0]?.startsWith("/")) {
      throw new HeddleError(
        "invalid_input",
        `Cannot start ${name}: "${argv[0] ?? ""}" is no absolute path`,
      );
    }
    const unit = this.#unitOf(handle);
    const envFile = join(directory, ENV_FILE);
    const exitFile = join(directory, EXIT_FILE);
    await writeFileAtomic(envFile, environmentFile(env));
    await writeFileAtomic(exitFile, " ".repeat(EXIT_RECORD_BYTES));
    // Its user writes there, and reaches it through the unit's own view alone.
    await Deno.chmod(exitFile, 0o666);
    const sibling = (await this.list()).find((each) =>
      each.whole && dirname(each.directory) === dirname(directory)
    );
    const args = startArguments(this.#kind, {
      handle,
      name,
      argv,
      variables: Object.keys(env),
      envFile,
      logFile: this.logFile(directory),
      exitFile,
      user: this.#options.user,
      sibling: sibling === undefined ? undefined : this.#unitOf(sibling.handle),
    });
    try {
      const { code, stderr } = await callSystemd(SYSTEMD_RUN, args);
      if (code !== 0) await this.#demandThatItRan(request, stderr);
    } catch (error) {
      await this.#endWhatMayRun(unit);
      throw error;
    }
    if (this.#kind === ENGINES) await this.#keepLogs();
    const [shown] = await this.#show(unit);
    // One that has ended by now has no pid any more; its record is there, or about to be.
    return {
      name,
      handle,
      pid: pidIn(shown?.MainPID) ?? 0,
      started: shown?.InvocationID ?? "",
    };
  }

  async list(): Promise<readonly LiveProcess[]> {
    const found: LiveProcess[] = [];
    for (const shown of await this.#show(unitsOf(this.#kind))) {
      const handle = handleOf(this.#kind, shown.Id ?? "");
      const envFile = environmentFileOf(shown);
      if (handle === undefined || envFile === undefined) continue;
      const directory = dirname(envFile);
      if (!directory.startsWith(`${this.#options.stateDirectory}/`)) continue;
      const main = pidIn(shown.MainPID);
      const started = shown.InvocationID ?? "";
      const pid = main ?? (await this.members({ name: "", handle, pid: 0, started }))[0];
      if (pid === undefined) continue;
      found.push({ handle, pid, started, directory, whole: main !== undefined });
    }
    return found;
  }

  async signal(process: ProcessRef, signal: Signal): Promise<"sent" | "gone"> {
    const unit = this.#unitOf(process.handle);
    const [shown] = await this.#show(unit);
    if (shown === undefined || shown.LoadState === "not-found") return "gone";
    if (pidIn(shown.MainPID) === undefined) {
      // It has ended. systemd kills the rest itself, and is not to be disturbed while it writes down
      // how: its recorder is in the same control group.
      if (signal === "SIGTERM" || (await this.members(process)).length === 0) return "gone";
      if (shown.SubState === "stop-post") return "sent";
    }
    const whom = signal === "SIGTERM" ? "main" : "all";
    const { code, stderr } = await callSystemd(SYSTEMCTL, [
      "kill",
      `--kill-who=${whom}`,
      `--signal=${signal}`,
      "--",
      unit,
    ]);
    if (code === 0) return "sent";
    // It ended between our look and our signal, which is what was wanted.
    if (/not loaded|No .*process to kill/i.test(stderr)) return "gone";
    throw new HeddleError("system", `Cannot send ${signal} to ${unit}: ${stderr}`);
  }

  async members(process: ProcessRef): Promise<readonly number[]> {
    return (await this.describe(process)).map(({ pid }) => pid);
  }

  async describe(process: ProcessRef): Promise<readonly LiveMember[]> {
    const { lines } = await callShim(this.#options.shim, [
      "unit-members",
      this.#unitOf(process.handle),
    ]);
    return readMembers(lines);
  }

  async exit(
    process: ProcessRef,
    directory: string,
    signal: AbortSignal,
  ): Promise<ExitRecord | undefined> {
    const file = join(directory, EXIT_FILE);
    let nextLookAt = 0;
    for (;;) {
      const written = await this.#readRecord(file) !== undefined;
      signal.throwIfAborted();
      if (written || performance.now() >= nextLookAt) {
        nextLookAt = performance.now() + UNIT_POLL_MS;
        // Read once more after the unit was seen to be gone: what it wrote, it wrote before.
        if (await this.#isGone(process.handle)) {
          const record = await this.#readRecord(file);
          return record === undefined ? undefined : decodeExitRecord(record);
        }
      }
      await delay(EXIT_POLL_MS, signal);
    }
  }

  async usage(processes: readonly ProcessRef[]): Promise<ReadonlyMap<string, ProcessUsage>> {
    if (processes.length === 0) return new Map();
    const { code, stdout, stderr } = await callSystemd(SYSTEMCTL, [
      "show",
      ...USAGE_PROPERTIES.map((name) => `--property=${name}`),
      "--",
      ...processes.map(({ handle }) => this.#unitOf(handle)),
    ]);
    if (code !== 0) throw new HeddleError("system", `Cannot ask systemd for units: ${stderr}`);
    const told = new Map(
      parseShow(stdout).flatMap((shown) => {
        const handle = handleOf(this.#kind, shown.Id ?? "");
        return handle === undefined || shown.LoadState === "not-found"
          ? []
          : [[handle, readUnitUsage(shown)] as const];
      }),
    );
    // Where control groups count nothing, as without controllers of their own, their processes are
    // summed up.
    const silent = [...told].filter(([, { memoryBytes }]) => memoryBytes === undefined)
      .map(([handle]) => this.#unitOf(handle));
    if (silent.length === 0) return told;
    const { lines } = await callShim(this.#options.shim, ["usage", ...silent]);
    const summed = readShimUsage(lines);
    return new Map(
      [...told].map(([handle, usage]) => [
        handle,
        { ...summed.get(this.#unitOf(handle)), ...usage },
      ]),
    );
  }

  logFile(directory: string): string {
    return join(directory, LOG_FILE);
  }

  #unitOf(handle: string): string {
    return unitOf(this.#kind, handle);
  }

  async #show(units: string): Promise<readonly Properties[]> {
    const properties = PROPERTIES.map((name) => `--property=${name}`);
    const { code, stdout, stderr } = await callSystemd(SYSTEMCTL, [
      "show",
      ...properties,
      "--",
      units,
    ]);
    if (code !== 0) throw new HeddleError("system", `Cannot ask systemd for units: ${stderr}`);
    return parseShow(stdout);
  }

  async #isGone(handle: string): Promise<boolean> {
    try {
      const [shown] = await this.#show(this.#unitOf(handle));
      return shown === undefined || shown.LoadState === "not-found" ||
        ["inactive", "failed"].includes(shown.ActiveState ?? "");
    } catch (error) {
      // Not knowing is not knowing it to be gone.
      log.warning("Cannot look for a unit", { unit: this.#unitOf(handle), error });
      return false;
    }
  }

  // Asked for at each start: it ends when there is nothing more to keep, and may have been stopped.
  async #keepLogs(): Promise<void> {
    const { shim, stateDirectory: folder } = this.#options;
    try {
      const args = logKeeperArguments({ shim, folder, slice: this.#kind.slice });
      const { code, stderr } = await callSystemd(SYSTEMD_RUN, args);
      if (code === 0 || /already (?:loaded|exists)/i.test(stderr)) return;
      log.warning("Logs of engines will grow while no agent runs", { why: stderr });
    } catch (error) {
      log.warning("Logs of engines will grow while no agent runs", { error });
    }
  }

  /** Undefined while there is none. Of what an engine may have put there only the start is read. */
  async #readRecord(file: string): Promise<string | undefined> {
    try {
      using open = await Deno.open(file);
      const bytes = new Uint8Array(EXIT_RECORD_BYTES);
      const count = await open.read(bytes) ?? 0;
      const text = new TextDecoder().decode(bytes.subarray(0, count));
      return text.trim() === "" ? undefined : text;
    } catch (error) {
      if (!(error instanceof Deno.errors.NotFound)) {
        log.warning("Cannot read how a process ended", { file, error });
      }
      return undefined;
    }
  }

  // Whoever asked is told that it does not run, and will look for it no more.
  async #endWhatMayRun(unit: string): Promise<void> {
    try {
      await callSystemd(SYSTEMCTL, ["kill", "--signal=SIGKILL", "--", unit]);
    } catch (error) {
      log.error("A unit that could not be started may run all the same", { unit, error });
    }
  }

  // A program that ends with an error as soon as it runs looks to systemd-run like one that could not
  // be started. The record tells them apart: one that ran is one that ended, and is told as such.
  async #demandThatItRan({ name, handle, directory }: LaunchRequest, said: string): Promise<void> {
    const unit = this.#unitOf(handle);
    const deadline = AbortSignal.timeout(RECORD_MS_MAX);
    while (!deadline.aborted && !await this.#isGone(handle)) await delay(RECORD_POLL_MS, deadline);
    const text = await this.#readRecord(join(directory, EXIT_FILE)) ?? "";
    if (startFailure(text) === undefined && decodeExitRecord(text) !== undefined) return;
    // Without its user even the recorder cannot be started.
    const hint = `see that user ${this.#options.user} exists, and what systemd says: ` +
      `journalctl -u ${unit}`;
    const why = startFailure(text) ?? (said || hint);
    throw new HeddleError("system", `Cannot start ${name} as ${unit}: ${why}`);
  }
}
