/**
 * Keeps what nvidia-smi and the PCI bus say about GPUs, and asks again what has grown old. Calls go
 * one after the other; after one that hangs nothing more is asked until it has ended.
 */

import {
  COMPUTE_APP_FIELDS,
  type ComputeApp,
  parseComputeApps,
} from "../core/nvidia/compute_apps.ts";
import { type GpuSurvey, surveyGpus } from "../core/gpu/gpu_facts.ts";
import type { GpuClassOverride } from "../core/gpu/gpu_class.ts";
import type { GpuUse } from "../core/gpu/gpu_release.ts";
import { parseMigList } from "../core/nvidia/mig_list.ts";
import { computing, rowOf } from "../core/gpu/gpu_problems.ts";
import type { GpuLinks, LinkReadings } from "../core/health/link_fault.ts";
import { countOf, mergeRows, parseCsv, type Row, textOf } from "../core/nvidia/nvidia_csv.ts";
import { pciAddress } from "../core/nvidia/pci_address.ts";
import { failureOf } from "../core/nvidia/nvidia_failure.ts";
import { type FieldGroup, fieldsToAsk, parseFieldList } from "../core/nvidia/nvidia_fields.ts";
import type { Answer, GpuReadings, GpuRows } from "../core/gpu/readings.ts";
import { throttled } from "../core/nvidia/throttling.ts";
import { type NvlinkStatus, parseNvlinkStatus } from "../core/nvidia/nvlink_status.ts";
import { parseTopology, type Topology, type TopologyReading } from "../core/nvidia/topology.ts";
import type { XidEvent } from "../core/health/xid.ts";
import { isDue } from "../core/host/is_due.ts";
import type { PciSurvey } from "../core/host/pci_survey.ts";
import type { BootMemory } from "../edge/boot_memory.ts";
import type { CallResult, NvidiaTool } from "../edge/hardware/nvidia_smi.ts";
import { readPci } from "../edge/hardware/pci.ts";
import type { Sysfs } from "../edge/hardware/sysfs.ts";

export interface GpuWatchOptions {
  readonly sysfs: Sysfs;
  /** Undefined: the node has no nvidia-smi. */
  readonly nvidiaSmi: NvidiaTool | undefined;
  readonly overrides: readonly GpuClassOverride[];
  readonly heldGpus: (() => ReadonlySet<string>) | undefined;
  readonly strangers: SeeStrangers | undefined;
  readonly wsl: boolean;
  /** Faults that the kernel logged, by PCI address. */
  readonly faults: () => ReadonlyMap<string, readonly XidEvent[]>;
  readonly now: () => number;
  readonly limits: GpuWatchLimits;
  /** What has been seen of the links since the boot. */
  readonly memory: BootMemory;
}

/**
 * Which of these processes are nobody's of ours, with their names; undefined: that cannot be told.
 * Never rejects.
 */
export type SeeStrangers = (
  pids: readonly number[],
) => Promise<ReadonlyMap<number, string> | undefined>;

/** Deadlines of calls and ages of readings, in ms. */
export interface GpuWatchLimits {
  readonly listDeadlineMs: number;
  readonly queryDeadlineMs: number;
  readonly topologyDeadlineMs: number;
  readonly liveAgeMs: number;
  readonly slowAgeMs: number;
  readonly topologyRetryMs: number;
}

export const GPU_WATCH_LIMITS: GpuWatchLimits = {
  /** A list of names takes no device; with one call more within a registration's patience. */
  listDeadlineMs: 10_000,
  /** Without persistence mode the driver sets up every GPU anew, which takes seconds each. */
  queryDeadlineMs: 20_000,
  /** 112 s were seen on a box with a badly seated bridge; such a box may as well be unknown. */
  topologyDeadlineMs: 60_000,
  /** nvidia-smi itself can trigger faults and costs CPU: not on every heartbeat. */
  liveAgeMs: 10_000,
  slowAgeMs: 60_000,
  topologyRetryMs: 600_000,
};

const NOT_ASKED = { kind: "not_asked" } as const;

interface Aged<T> {
  readonly answer: Answer<T>;
  readonly at: number;
}

export class GpuWatch {
  readonly #options: GpuWatchOptions;
  readonly #tool: NvidiaTool | undefined;
  readonly #refused = new Set<string>();
  readonly #known = new Map<string, Row>();
  readonly #throttled = new Map<string, number>();
  readonly #groups = new Map<FieldGroup, Aged<GpuRows>>();
  #liveBegunAt = -Infinity;
  #listed: ReadonlySet<string> | undefined;
  /** Driver that the list of fields is of; undefined: the list was not asked for yet. */
  #listedFor: string | undefined;
  #pci: { readonly survey: PciSurvey; readonly at: number } | undefined;
  #topology: (Aged<TopologyReading> & { readonly gpus: string }) | undefined;
  #nvlinks:
    | { readonly statuses: ReadonlyMap<string, NvlinkStatus>; readonly at: number }
    | undefined;
  #processes: Aged<readonly ComputeApp[]> | undefined;
  /** What the last look, and the last two, found to be strangers on held GPUs. */
  #strangersSeen: ReadonlyMap<number, string> = new Map();
  #strangers: ReadonlyMap<number, string> = new Map();
  #migInstances: ReadonlyMap<string, readonly string[]> = new Map();

  constructor(options: GpuWatchOptions) {
    this.#options = options;
    this.#tool = options.nvidiaSmi;
  }

  /** Resolves when no abandoned call of nvidia-smi is left. May never do so. */
  async idle(): Promise<void> {
    await this.#tool?.idle();
  }

  /**
   * Judges what was read last. `late`: a reading is under way for longer than anyone waits, and if
   * nothing was ever read, that is what there is to say.
   */
  survey(systemMemoryMib: number | undefined, late: boolean): GpuSurvey {
    const answer = (group: FieldGroup) => this.#answer(group);
    const readings: GpuReadings = {
      nvidiaSmi: this.#tool?.path,
      identity: late && this.#tool !== undefined && !this.#groups.has("identity")
        ? { kind: "hung", call: "--query-gpu" }
        : answer("identity"),
      live: answer("live"),
      mode: answer("mode"),
      health: answer("health"),
      recent: answer("recent"),
      pcie: answer("pcie"),
      migInstances: this.#migInstances,
      topology: this.#topology?.answer ?? NOT_ASKED,
      nvlinks: this.#nvlinks?.statuses ?? new Map(),
      processes: this.#processes?.answer ?? NOT_ASKED,
      known: this.#known,
      throttledSamples: this.#throttled,
      pci: this.pci(),
      faults: this.#options.faults(),
      systemMemoryMib,
      overrides: this.#options.overrides,
      held: this.#options.heldGpus?.(),
      strangers: this.#strangers,
      wsl: this.#options.wsl,
    };
    return surveyGpus(readings);
  }

  #answer(group: FieldGroup): Answer<GpuRows> {
    return this.#groups.get(group)?.answer ?? NOT_ASKED;
  }

  /** What the PCI bus said last. */
  pci(): PciSurvey {
    return this.#pci?.survey ?? { kind: "missing" };
  }

  /**
   * Who uses the GPUs, when the look for that began at `since` or later; undefined: unknown. GPUs of
   * which the driver gave no row are left out.
   */
  uses(since: number): readonly GpuUse[] | undefined {
    const live = this.#groups.get("live")?.answer;
    if (live?.kind !== "answered" || this.#liveBegunAt < since) return undefined;
    const apps = this.#processes?.answer;
    return this.survey(undefined, false).gpus.flatMap((gpu) => {
      if (!live.value.rows.has(gpu.uuid)) return [];
      const { uuid, index, memoryUsedMib, memoryTotalMib } = gpu;
      const holders = apps?.kind === "answered"
        ? apps.value.filter(({ gpuUuid }) => gpuUuid === uuid)
        : [];
      return [{
        uuid,
        index,
        ...(memoryUsedMib === undefined ? {} : { usedMib: memoryUsedMib }),
        ...(memoryTotalMib === undefined ? {} : { totalMib: memoryTotalMib }),
        holders: holders.map(({ pid, name }) => ({ pid, name })),
      }];
    });
  }

  /** What was read last of the links between GPUs. */
  links(): Pick<LinkReadings, "gpus" | "pairs"> {
    const { memory, faults } = this.#options;
    const gpus = new Map<string, GpuLinks>();
    const uuids = new Map<number, string>();
    for (const [uuid, row] of this.#known) {
      const index = countOf(row, "index");
      if (index !== undefined && rowOf(this.#answer("identity"), uuid) !== undefined) {
        uuids.set(index, uuid);
      }
      const logged = faults().get(pciAddress(textOf(row, "pci.bus_id") ?? "") ?? "");
      gpus.set(uuid, {
        active: this.#nvlinks?.statuses.get(uuid)?.active,
        most: memory.nvlinks.get(uuid) ?? 0,
        fault: logged?.find(({ verdict }) => verdict === "nvlink")?.text,
      });
    }
    const pairs = (this.#topologyNow()?.nvlinks ?? []).flatMap(({ a, b, links }) => {
      const [first, second] = [uuids.get(a), uuids.get(b)];
      return first === undefined || second === undefined ? [] : [{ a: first, b: second, links }];
    });
    return { gpus, pairs };
  }

  /** Reads again what has grown old, and live values that are older than `liveSince`. Only one at a time; rejects only when `signal` aborts. */
  async refresh(signal: AbortSignal, liveSince = -Infinity): Promise<void> {
    const { limits, sysfs, now } = this.#options;
    if (this.#isDue(this.#pci?.at, limits.slowAgeMs)) {
      this.#pci = { survey: await readPci(sysfs), at: now() };
    }
    if (this.#tool === undefined) return;
    if (!await this.#listFields(this.#tool, signal)) return;
    for (const group of ["identity", "live", "mode", "health", "recent"] as const) {
      const age = group === "live" ? limits.liveAgeMs : limits.slowAgeMs;
      const last = this.#groups.get(group);
      const due = this.#isDue(last?.at, age) ||
        (group === "live" && this.#liveBegunAt < liveSince);
      if (last?.answer.kind !== "hung" && !due) continue;
      if (group === "live") this.#liveBegunAt = now();
      const answer = await this.#askGroup(this.#tool, group, signal);
      this.#groups.set(group, { answer, at: now() });
      if (answer.kind === "hung" || answer.kind === "not_started") return;
      if (group === "identity") this.#learn(answer);
      if (group === "live") await this.#askProcesses(this.#tool, signal);
      if (group === "mode") await this.#askMig(this.#tool, answer, signal);
      if (group === "health") this.#countThrottled(answer);
    }
    await this.#askTopology(this.#tool, signal);
    await this.#askNvlinks(this.#tool, signal);
    // Last: it is worth the least, and older captures do not have it.
    if (this.#isDue(this.#groups.get("pcie")?.at, limits.slowAgeMs)) {
      const answer = await this.#askGroup(this.#tool, "pcie", signal);
      this.#groups.set("pcie", { answer, at: now() });
    }
  }

  /** Asks which fields this driver knows, once per driver. False: nothing else can be asked. */
  async #listFields(tool: NvidiaTool, signal: AbortSignal): Promise<boolean> {
    const driver = this.#driverVersion();
    if (this.#listedFor === driver) return true;
    const { limits, now } = this.#options;
    const result = await tool.run(["--help-query-gpu"], limits.listDeadlineMs, signal);
    if (result.kind === "finished") {
      this.#listed = parseFieldList(result.stdout);
      this.#listedFor = driver;
      this.#refused.clear();
      return true;
    }
    this.#groups.set("identity", { answer: failedAnswer(result), at: now() });
    return false;
  }

  #driverVersion(): string {
    for (const row of this.#known.values()) {
      const version = textOf(row, "driver_version");
      if (version !== undefined) return version;
    }
    return "";
  }

  async #askGroup(
    tool: NvidiaTool,
    group: FieldGroup,
    signal: AbortSignal,
  ): Promise<Answer<GpuRows>> {
    for (;;) {
      const fields = fieldsToAsk(group, this.#listed, this.#refused);
      if (fields.length === 0) return NOT_ASKED;
      const args = [`--query-gpu=${fields.join(",")}`, "--format=csv,noheader,nounits"];
      const result = await tool.run(args, this.#options.limits.queryDeadlineMs, signal);
      if (result.kind !== "finished") return failedAnswer(result);
      const failure = failureOf(result);
      // Each round leaves out one field more, so that there are at most as many rounds as fields.
      if (failure?.kind === "field_refused" && !this.#refused.has(failure.field)) {
        this.#refused.add(failure.field);
        if (fields.includes(failure.field)) continue;
      }
      const table = parseCsv(result.stdout, fields);
      const rows = new Map<string, Row>();
      for (const row of table.rows) {
        const uuid = textOf(row, "uuid");
        if (uuid !== undefined && !rows.has(uuid)) rows.set(uuid, row);
      }
      return { kind: "answered", value: { rows, rest: table.rest }, failure };
    }
  }

  #learn(answer: Answer<GpuRows>): void {
    if (answer.kind !== "answered") return;
    const before = this.#driverVersion();
    for (const [uuid, row] of answer.value.rows) {
      this.#known.set(uuid, mergeRows(this.#known.get(uuid), row));
    }
    // The list was asked for before any GPU had told its driver: it is of that driver. No list, as
    // while the driver was not loaded, is asked for once more.
    if (before === "" && this.#listed !== undefined) this.#listedFor = this.#driverVersion();
  }

  #countThrottled(answer: Answer<GpuRows>): void {
    if (answer.kind !== "answered") return;
    for (const [uuid, row] of answer.value.rows) {
      const slowed = throttled(textOf(row, "clocks_throttle_reasons.active"));
      this.#throttled.set(uuid, slowed ? (this.#throttled.get(uuid) ?? 0) + 1 : 0);
    }
  }

  async #askProcesses(tool: NvidiaTool, signal: AbortSignal): Promise<void> {
    if (this.#options.heldGpus === undefined) return;
    const args = [
      `--query-compute-apps=${COMPUTE_APP_FIELDS.join(",")}`,
      "--format=csv,noheader,nounits",
    ];
    const result = await tool.run(args, this.#options.limits.queryDeadlineMs, signal);
    const answer: Answer<readonly ComputeApp[]> = result.kind === "finished"
      ? { kind: "answered", value: parseComputeApps(result.stdout), failure: failureOf(result) }
      : failedAnswer(result);
    this.#processes = { answer, at: this.#options.now() };
    await this.#seeStrangers(answer.kind === "answered" ? answer.value : []);
  }

  // Twice, because an engine's process may have ended, and its number have been given to another,
  // between the driver's answer and ours.
  async #seeStrangers(apps: readonly ComputeApp[]): Promise<void> {
    const { heldGpus, strangers } = this.#options;
    const held = heldGpus?.() ?? new Set<string>();
    const pids = [...held].flatMap((uuid) => computing(uuid, apps).map(({ pid }) => pid));
    const seen = pids.length === 0 ? new Map<number, string>() : await strangers?.(pids);
    const before = this.#strangersSeen;
    this.#strangersSeen = seen ?? new Map();
    this.#strangers = new Map([...this.#strangersSeen].filter(([pid]) => before.has(pid)));
  }

  async #askMig(tool: NvidiaTool, mode: Answer<GpuRows>, signal: AbortSignal): Promise<void> {
    const enabled = mode.kind === "answered" &&
      [...mode.value.rows.values()].some((row) =>
        textOf(row, "mig.mode.current")?.toLowerCase() === "enabled"
      );
    if (!enabled) return;
    const result = await tool.run(["-L"], this.#options.limits.queryDeadlineMs, signal);
    if (result.kind === "finished") this.#migInstances = parseMigList(result.stdout);
  }

  /** Links do not change while the same GPUs are there; what could not be read is tried again. */
  async #askTopology(tool: NvidiaTool, signal: AbortSignal): Promise<void> {
    const { limits, now } = this.#options;
    const gpus = [...this.#known.keys()].sort().join();
    if (this.#known.size < 2) return;
    const last = this.#topology;
    const readable = last?.answer.kind === "answered" && last.answer.value.kind === "known";
    if (last?.gpus === gpus && (readable || !this.#isDue(last.at, limits.topologyRetryMs))) return;
    const result = await tool.run(["topo", "-m"], limits.topologyDeadlineMs, signal);
    const answer: Answer<TopologyReading> = result.kind === "finished"
      ? { kind: "answered", value: parseTopology(result.stdout), failure: failureOf(result) }
      : failedAnswer(result);
    this.#topology = { answer, at: now(), gpus };
  }

  #topologyNow(): Topology | undefined {
    const answer = this.#topology?.answer;
    return answer?.kind === "answered" && answer.value.kind === "known"
      ? answer.value.topology
      : undefined;
  }

  /** Only where there are links, or were: without any there is nothing to lose. */
  async #askNvlinks(tool: NvidiaTool, signal: AbortSignal): Promise<void> {
    const { limits, now, memory } = this.#options;
    const linked = (this.#topologyNow()?.nvlinks.length ?? 0) > 0 || memory.nvlinks.size > 0;
    if (!linked || !this.#isDue(this.#nvlinks?.at, limits.slowAgeMs)) return;
    const result = await tool.run(["nvlink", "-s"], limits.queryDeadlineMs, signal);
    const statuses = result.kind === "finished" ? parseNvlinkStatus(result.stdout) : new Map();
    this.#nvlinks = { statuses, at: now() };
    memory.noteNvlinks(new Map([...statuses].map(([uuid, { active }]) => [uuid, active])));
  }

  #isDue(at: number | undefined, ageMs: number): boolean {
    return isDue(at, ageMs, this.#options.now());
  }
}

function failedAnswer(
  result: Exclude<CallResult, { readonly kind: "finished" }>,
): Extract<Answer<never>, { readonly kind: "hung" | "not_started" }> {
  return result.kind === "not_started"
    ? { kind: "not_started", why: result.why, message: result.message }
    : { kind: "hung", call: result.call };
}
