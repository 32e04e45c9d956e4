/** What an agent beside an attached engine finds out for itself. Nothing here touches the engine. */
import { parseAddress } from "@heddle/common/address";
import { askEngine } from "@heddle/common/engine/http";
import type { StagingReading } from "../../core/attach/staging.ts";
import { classifyGpu } from "../../core/gpu/gpu_class.ts";
import { countOf, parseCsv, textOf } from "../../core/nvidia/nvidia_csv.ts";
import { type NvlinkStatus, parseNvlinkStatus } from "../../core/nvidia/nvlink_status.ts";
import type { NvidiaTool } from "../hardware/nvidia_smi.ts";
import { reasonOf } from "../reason_of.ts";

const HEALTH_MS_MAX = 4_000;
const NVIDIA_MS_MAX = 5_000;
const MEASURE_MS_MAX = 3_000;
const WORDS_MAX = 200;

/** `name` is last: it is free text, the others have a fixed shape. */
const CARD_FIELDS = ["uuid", "memory.total", "name"] as const;

export interface Card {
  readonly uuid: string;
  readonly name: string;
  readonly gpuClass: string;
  readonly memoryTotalMib?: number;
}

/** Why the engine is not ready; undefined when it is. Never rejects but when `signal` aborts. */
export async function lookAtHealth(url: URL, signal: AbortSignal): Promise<string | undefined> {
  const secure = url.protocol === "https:";
  const port = url.port === "" ? (secure ? "443" : "80") : url.port;
  const answer = await askEngine({
    address: parseAddress(`${url.hostname}:${port}`),
    path: `${url.pathname}${url.search}`,
    secure,
    apiKey: "",
    deadlineMs: HEALTH_MS_MAX,
    signal,
  });
  signal.throwIfAborted();
  switch (answer.kind) {
    case "refused":
      return `nothing listens at ${url.host} yet`;
    case "failed":
      return `${url.host}: ${answer.why}`;
    case "answer":
      return answer.status >= 200 && answer.status < 300
        ? undefined
        : `${url.host} answers ${answer.status}`;
    default:
      return answer satisfies never;
  }
}

/** The first of these that is there; undefined: this machine has no nvidia-smi, so no cards. */
export async function lookAtCards(
  tools: readonly NvidiaTool[],
  signal: AbortSignal,
): Promise<{ readonly tool: NvidiaTool | undefined; readonly cards: readonly Card[] | undefined }> {
  const args = [`--query-gpu=${CARD_FIELDS.join(",")}`, "--format=csv,noheader,nounits"];
  for (const tool of tools) {
    const result = await tool.run(args, NVIDIA_MS_MAX, signal);
    // What is not there when a program starts, Deno refuses as it does what is not allowed.
    if (result.kind === "not_started" && result.why !== "failed") continue;
    if (result.kind !== "finished") return { tool, cards: undefined };
    const none = /No devices were found/i.test(result.stdout + result.stderr);
    if (result.code !== 0 && !none) return { tool, cards: undefined };
    return { tool, cards: cardsOf(result.stdout) };
  }
  return { tool: undefined, cards: [] };
}

function cardsOf(stdout: string): readonly Card[] {
  return parseCsv(stdout, CARD_FIELDS).rows.map((row) => {
    const name = textOf(row, "name") ?? "";
    const memoryTotalMib = countOf(row, "memory.total");
    return {
      uuid: textOf(row, "uuid") ?? "",
      name,
      gpuClass: classOf(name, memoryTotalMib),
      ...(memoryTotalMib === undefined ? {} : { memoryTotalMib }),
    };
  });
}

function classOf(name: string, memoryMib: number | undefined): string {
  const kind = classifyGpu({
    name,
    memoryMib,
    memoryNotReported: false,
    pciDeviceId: undefined,
    systemMemoryMib: undefined,
  });
  return "gpuClass" in kind ? kind.gpuClass : "";
}

/** The links of every card; undefined: no reading. */
export async function lookAtLinks(
  tool: NvidiaTool,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, NvlinkStatus> | undefined> {
  const result = await tool.run(["nvlink", "-s"], NVIDIA_MS_MAX, signal);
  return result.kind === "finished" && result.code === 0
    ? parseNvlinkStatus(result.stdout)
    : undefined;
}

/**
 * How much there is in the first of these folders that exists. By `du`, so that this program needs
 * not be allowed to read what it measures. Never rejects but when `signal` aborts.
 */
export async function measure(
  places: readonly string[],
  { du, now, signal }: {
    readonly du: readonly string[];
    readonly now: () => number;
    readonly signal: AbortSignal;
  },
): Promise<StagingReading> {
  for (const directory of places) {
    const result = await runDu(directory, du, signal);
    signal.throwIfAborted();
    if (result.kind === "missing") continue;
    if (result.kind === "failed") return { kind: "unavailable", directory, why: result.why };
    return { kind: "read", directory, bytes: result.bytes, at: now() };
  }
  return { kind: "none" };
}

type Measured =
  | { readonly kind: "measured"; readonly bytes: number }
  | { readonly kind: "missing" }
  | { readonly kind: "failed"; readonly why: string };

async function runDu(
  directory: string,
  programs: readonly string[],
  signal: AbortSignal,
): Promise<Measured> {
  const late = AbortSignal.timeout(MEASURE_MS_MAX);
  for (const program of programs) {
    try {
      const { code, stdout, stderr } = await new Deno.Command(program, {
        args: ["-skL", "--", directory],
        clearEnv: true,
        env: { LC_ALL: "C", PATH: "/usr/bin:/bin" },
        stdin: "null",
        stdout: "piped",
        stderr: "piped",
        signal: AbortSignal.any([signal, late]),
      }).output();
      if (late.aborted) {
        return { kind: "failed", why: `it took more than ${MEASURE_MS_MAX} ms to measure` };
      }
      const said = new TextDecoder().decode(stderr).trim();
      const kib = /^(\d+)\s/.exec(new TextDecoder().decode(stdout))?.[1];
      if (code === 0 && kib !== undefined) return { kind: "measured", bytes: Number(kib) * 1_024 };
      if (kib === undefined && /No such file or directory/i.test(said)) return { kind: "missing" };
      // Files come and go while weights arrive: what was counted beside one that went is right.
      if (kib !== undefined && said.split("\n").every((line) => /No such file/i.test(line))) {
        return { kind: "measured", bytes: Number(kib) * 1_024 };
      }
      return {
        kind: "failed",
        why: said.split("\n")[0]?.slice(0, WORDS_MAX) || `du ended with ${code}`,
      };
    } catch (error) {
      const absent = error instanceof Deno.errors.NotFound ||
        error instanceof Deno.errors.NotCapable;
      if (!absent) return { kind: "failed", why: reasonOf(error) };
    }
  }
  return { kind: "failed", why: "there is no du here" };
}
