/** What passes between the agent and the program that installs engines, as with what fetches. */
import { z } from "zod";

const requestSchema = z.object({
  verb: z.enum(["install", "remove"]).default("install"),
  engine: z.enum(["llamacpp", "vllm", "sglang"]),
  version: z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._+-]{0,63}$/),
  /** Folder of all engines that Heddle installs. */
  into: z.string(),
  /** Archives: address, or folder, with a JSON document for each release. */
  releases: z.string().default(""),
  /** Python: an index of packages, or a folder of wheels; empty: uv's own. */
  index: z.string().default(""),
  /** Python: what is installed besides, such as "torch==2.9.0". */
  packages: z.array(z.string()).default([]),
  /** Absolute path of uv. */
  uv: z.string().default("/usr/local/bin/uv"),
  python: z.string().default("3.12"),
  arch: z.string(),
  /** Absolute path of heddle-shim. */
  shim: z.string(),
  /** Newest major version of CUDA that the driver runs; absent: no NVIDIA GPU. */
  cuda: z.number().optional(),
  /** What the driver calls itself, for the words of a refusal. */
  driver: z.string().default(""),
  ca_file: z.string().optional(),
  seconds_max: z.number().default(3_600),
});
export type InstallRequest = z.output<typeof requestSchema>;

export function decodeInstallRequest(text: string): InstallRequest {
  return requestSchema.parse(JSON.parse(text));
}

const INSTALL_REASONS = [
  /** Not for this machine: another try cannot help. */
  "unsupported",
  "no_digest",
  "release_not_found",
  "unreachable",
  "corrupt",
  /** The archive holds what must not be unpacked. */
  "archive_refused",
  "wrong_architecture",
  /** Built for a newer CUDA than the driver runs. */
  "driver_too_old",
  "driver_missing",
  "library_missing",
  "does_not_run",
  "uv_missing",
  "disk_full",
  "system_error",
] as const;
export type InstallReason = (typeof INSTALL_REASONS)[number];

const reportSchema = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("progress"), words: z.string() }),
  z.object({
    kind: z.literal("installed"),
    folder: z.string(),
    path: z.string(),
    version: z.string(),
  }),
  z.object({ kind: z.literal("removed"), folder: z.string() }),
  z.object({ kind: z.literal("failed"), reason: z.enum(INSTALL_REASONS), message: z.string() }),
]);
export type InstallReport = z.output<typeof reportSchema>;

export function lastInstallReport(text: string): InstallReport | undefined {
  for (const line of text.split("\n").reverse()) {
    try {
      const parsed = reportSchema.safeParse(JSON.parse(line));
      if (parsed.success) return parsed.data;
    } catch {
      // Not one of ours.
    }
  }
  return undefined;
}

/** Thrown while installing; becomes the program's last word. */
export class InstallError extends Error {
  readonly reason: InstallReason;

  constructor(reason: InstallReason, message: string, options?: { readonly cause?: unknown }) {
    super(message, options);
    this.name = "InstallError";
    this.reason = reason;
  }
}

/** In an engine's folder: that it was seen to run. */
export const ENGINE_MARK = ".heddle-engine.json";

const markSchema = z.object({
  format: z.literal(1),
  engine: z.string(),
  version: z.string(),
  /** Its program, below the folder. */
  program: z.string(),
});
export type EngineMark = z.output<typeof markSchema>;

export function encodeMark(mark: Omit<EngineMark, "format">): string {
  return `${JSON.stringify({ format: 1, ...mark })}\n`;
}

export function decodeMark(text: string): EngineMark | undefined {
  try {
    return markSchema.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}
