/**
 * A machine's hardware in a folder: what discovery read there, with what identifies the machine
 * masked, so that a user can attach it to a report and anyone can build the inventory from it.
 *
 * - `sysfs.tsv`: every attribute that was read (core/host/sysfs_capture.ts says how).
 * - `nvidia_smi.json`: every call of nvidia-smi with its exit code and both outputs.
 * - `kernel_log.txt`: what the kernel logged of faults of GPUs, without pids and names of programs.
 * - `host.json`: system, architecture, CPUs and memory; addresses by interface, which of them the node is
 *   managed by, and its declared fabrics, without which no adapter can be judged as it was there.
 */

import { z } from "zod";
import { HeddleError } from "@heddle/proto/error";
import { type XidEvent, xidLine } from "../core/health/xid.ts";
import type { HostFacts } from "../core/host/host_facts.ts";
import { Mask } from "../core/host/mask.ts";
import {
  type CapturedEntry,
  formatSysfsCapture,
  parseSysfsCapture,
  type SysfsCapture,
} from "../core/host/sysfs_capture.ts";
import type { DeclaredFabric } from "../core/rdma/declared_fabric.ts";
import {
  type CapturedCall,
  CapturedNvidiaSmi,
  RecordingNvidiaSmi,
} from "../edge/hardware/captured_nvidia_smi.ts";
import { CapturedSysfs, RecordingSysfs } from "../edge/hardware/captured_sysfs.ts";
import { reasonOf } from "../edge/reason_of.ts";
import type { HardwareSource } from "./hardware_source.ts";

/** Form of the folder. A reader refuses a later one. */
const CAPTURE_VERSION = 1;

const callResult = z.discriminatedUnion("kind", [
  z.object({
    kind: z.literal("finished"),
    code: z.number(),
    stdout: z.string(),
    stderr: z.string(),
  }),
  z.object({ kind: z.literal("hung"), call: z.string(), deadlineMs: z.number() }),
  z.object({ kind: z.literal("blocked"), call: z.string() }),
  z.object({
    kind: z.literal("not_started"),
    why: z.enum(["missing", "denied", "failed"]),
    message: z.string(),
  }),
]);

const nvidiaSmiFile = z.object({
  /** Null: the machine had none. */
  path: z.string().nullable(),
  calls: z.array(z.object({ args: z.array(z.string()), result: callResult })),
});

const hostFile = z.object({
  version: z.literal(CAPTURE_VERSION),
  os: z.string(),
  arch: z.string(),
  cpuCount: z.number(),
  memoryBytes: z.number().nullable(),
  /** Null: they could not be read. Captures of earlier versions have none of what follows. */
  interfaces: z.array(
    z.object({ name: z.string(), address: z.string(), netmask: z.string() }),
  ).nullish(),
  managementAddress: z.string().optional(),
  fabrics: z.array(z.object({
    name: z.string(),
    hcas: z.array(z.string()),
    linkLayer: z.enum(["infiniband", "ethernet"]).optional(),
    rateGbps: z.number().optional(),
  })).optional(),
});

/** What the node's configuration said of its hardware, as far as the inventory depends on it. */
export interface CapturedSettings {
  readonly managementAddress: string;
  readonly fabrics: readonly DeclaredFabric[];
}

/** A source that keeps what is read through it. */
export class RecordingSource implements HardwareSource {
  readonly sysfs: RecordingSysfs;
  readonly nvidiaSmi: RecordingNvidiaSmi | undefined;
  readonly host: () => HostFacts;

  constructor(inner: HardwareSource) {
    this.sysfs = new RecordingSysfs(inner.sysfs);
    this.nvidiaSmi = inner.nvidiaSmi === undefined
      ? undefined
      : new RecordingNvidiaSmi(inner.nvidiaSmi);
    this.host = inner.host;
  }

  /**
   * Writes all that was read so far below `folder`, masked, the faults of GPUs that the kernel logged,
   * and the settings. Throws HeddleError when it cannot.
   */
  async write(
    folder: string,
    faults: readonly XidEvent[],
    { managementAddress, fabrics }: CapturedSettings,
  ): Promise<void> {
    const mask = new Mask();
    const { os, arch, cpuCount, memoryBytes, interfaces } = this.host();
    const host = {
      version: CAPTURE_VERSION,
      os,
      arch,
      cpuCount,
      memoryBytes: memoryBytes ?? null,
      interfaces: interfaces?.map(({ name, address, netmask }) => ({
        name,
        address: mask.address(address),
        netmask,
      })) ?? null,
      managementAddress: mask.address(managementAddress),
      fabrics: fabrics.map((fabric) => ({ ...fabric, hcas: [...fabric.hcas] })),
    } satisfies z.input<typeof hostFile>;
    const nvidiaSmi = {
      path: this.nvidiaSmi?.path ?? null,
      calls: (this.nvidiaSmi?.calls ?? []).map((call) => maskCall(call, mask)),
    } satisfies z.input<typeof nvidiaSmiFile>;
    try {
      await Deno.mkdir(folder, { recursive: true });
      await Deno.writeTextFile(`${folder}/sysfs.tsv`, sysfsText(this.sysfs.capture(), mask));
      await Deno.writeTextFile(`${folder}/nvidia_smi.json`, `${jsonText(nvidiaSmi)}\n`);
      await Deno.writeTextFile(kernelLogOf(folder), faults.map(faultText).join(""));
      await Deno.writeTextFile(`${folder}/host.json`, `${jsonText(host)}\n`);
    } catch (error) {
      throw new HeddleError(
        "failed_precondition",
        `Cannot write the capture into ${folder}: ${reasonOf(error)}`,
        { cause: error },
      );
    }
  }
}

/** Where a capture has the kernel's lines about GPUs; captures of earlier versions have none. */
export function kernelLogOf(folder: string): string {
  return `${folder}/kernel_log.txt`;
}

// Which program it was that a GPU failed under is nobody's business.
function faultText(fault: XidEvent): string {
  return `${xidLine(fault).replaceAll(/\b(pid|name)=('[^']*'|<[^>]*>|[^,\s]+)/g, "$1=masked")}\n`;
}

function maskCall(call: CapturedCall, mask: Mask): z.input<typeof nvidiaSmiFile>["calls"][number] {
  const { result } = call;
  return {
    args: [...call.args],
    result: result.kind === "finished"
      ? { ...result, stdout: mask.text(result.stdout), stderr: mask.text(result.stderr) }
      : result,
  };
}

/** Node descriptions hold host names, which no pattern finds; no decision needs more of them. */
function sysfsText(capture: SysfsCapture, mask: Mask): string {
  const kept = new Map<string, CapturedEntry>();
  for (const [path, entry] of capture) {
    if (entry.kind !== "text") kept.set(path, entry);
    else {
      const hidden = path.endsWith("/node_desc") && !/^(?:rxe|software iwarp)/i.test(entry.text);
      kept.set(path, { kind: "text", text: hidden ? "masked" : mask.text(entry.text) });
    }
  }
  return formatSysfsCapture(kept);
}

function jsonText(value: unknown): string {
  return JSON.stringify(value, null, 2);
}

/** The source that a folder written by RecordingSource holds. Throws HeddleError for any other. */
export async function readCapture(
  folder: string,
): Promise<{ readonly source: HardwareSource; readonly settings: Partial<CapturedSettings> }> {
  const host = parsed(hostFile, await fileText(`${folder}/host.json`), `${folder}/host.json`);
  const smiPath = `${folder}/nvidia_smi.json`;
  const smi = parsed(nvidiaSmiFile, await fileText(smiPath), smiPath);
  const sysfs = parseSysfsCapture(await fileText(`${folder}/sysfs.tsv`));
  const source: HardwareSource = {
    sysfs: new CapturedSysfs(folder, sysfs),
    nvidiaSmi: smi.path === null ? undefined : new CapturedNvidiaSmi(smi.path, smi.calls),
    host: () => ({
      hostname: "",
      os: host.os,
      arch: host.arch,
      cpuCount: host.cpuCount,
      memoryBytes: host.memoryBytes ?? undefined,
      interfaces: host.interfaces ?? undefined,
      problems: [],
    }),
  };
  const { managementAddress } = host;
  const fabrics = host.fabrics?.map(({ linkLayer, rateGbps, ...fabric }) => ({
    ...fabric,
    ...(linkLayer === undefined ? {} : { linkLayer }),
    ...(rateGbps === undefined ? {} : { rateGbps }),
  }));
  return {
    source,
    settings: {
      ...(managementAddress === undefined ? {} : { managementAddress }),
      ...(fabrics === undefined ? {} : { fabrics }),
    },
  };
}

async function fileText(path: string): Promise<string> {
  try {
    return await Deno.readTextFile(path);
  } catch (error) {
    throw new HeddleError("invalid_input", `Cannot read the capture: ${reasonOf(error)}`, {
      cause: error,
    });
  }
}

function parsed<T>(schema: z.ZodType<T>, text: string, path: string): T {
  try {
    return schema.parse(JSON.parse(text));
  } catch (error) {
    const why = error instanceof z.ZodError ? z.prettifyError(error) : reasonOf(error);
    throw new HeddleError(
      "invalid_input",
      `Cannot read the capture: ${path} is no such file: ${why}`,
      {
        cause: error,
      },
    );
  }
}
