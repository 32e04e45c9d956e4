/**
 * Which file of a release is for this machine. Names of assets change with every other release, so
 * none is built: what is there is matched.
 */

import { type Driver, needsDriver } from "./cuda.ts";

export interface Asset {
  readonly name: string;
  readonly url: string;
  readonly size: number;
  /** "sha256:…" */
  readonly digest: string;
}

export type Chosen =
  | { readonly kind: "asset"; readonly asset: Asset }
  | {
    readonly kind: "none";
    readonly reason: "unsupported" | "no_digest" | "driver_too_old";
    readonly why: string;
  };

export interface Machine extends Driver {
  /** "x86_64" or "aarch64". */
  readonly arch: string;
}

const ARCHIVE = /\.(?:tar\.gz|tgz)$/i;
const ARCHES: Readonly<Record<string, RegExp>> = {
  x86_64: /(?:^|[-_.])(?:x64|x86_64|amd64)(?:[-_.]|$)/i,
  aarch64: /(?:^|[-_.])(?:arm64|aarch64)(?:[-_.]|$)/i,
};
const LINUX = /ubuntu|linux/i;
/** Builds for hardware that Heddle does not look for. */
const OTHERS = /vulkan|rocm|hip|sycl|opencl|musa|cann|openvino|kompute|riscv|s390x|ppc64/i;
const CUDA = /cuda(?:[-_]?(\d+))?/i;

/** The best asset for a machine: for its CUDA where there is one, else for its processor. Pure. */
export function chooseAsset(assets: readonly Asset[], machine: Machine): Chosen {
  const arch = ARCHES[machine.arch];
  const fitting = assets.filter(({ name }) =>
    ARCHIVE.test(name) && LINUX.test(name) && arch?.test(name) === true && !OTHERS.test(name)
  );
  const tooNew = buildsTooNew(fitting, machine);
  if (tooNew !== undefined) return tooNew;
  const best = fitting.filter(({ name }) => scoreOf(name, machine) > 0)
    .sort((a, b) =>
      scoreOf(b.name, machine) - scoreOf(a.name, machine) || (a.name < b.name ? -1 : 1)
    )[0];
  if (best === undefined) {
    const names = assets.map(({ name }) => name).slice(0, 8).join(", ") || "nothing";
    return {
      kind: "none",
      reason: "unsupported",
      why: `the release has no .tar.gz for Linux on ${machine.arch}; it has ${names}`,
    };
  }
  if (!/^sha256:[0-9a-f]{64}$/.test(best.digest)) {
    return {
      kind: "none",
      reason: "no_digest",
      why: `the release gives no SHA-256 of ${best.name}, so it cannot be checked`,
    };
  }
  return { kind: "asset", asset: best };
}

/**
 * A node with GPUs for which every CUDA build of the release is too new. The build for its processor
 * would start, and leave the GPUs idle.
 */
function buildsTooNew(fitting: readonly Asset[], machine: Machine): Chosen | undefined {
  if (machine.driver === "") return undefined;
  const builds = fitting.filter(({ name }) => CUDA.test(name));
  if (builds.length === 0 || builds.some(({ name }) => scoreOf(name, machine) > 0)) {
    return undefined;
  }
  const oldest = Math.min(...builds.map(({ name }) => Number(CUDA.exec(name)?.[1] ?? 0)));
  const why = `its build for CUDA ${oldest} ${needsDriver(oldest, machine.driver)}`;
  return { kind: "none", reason: "driver_too_old", why };
}

function scoreOf(name: string, { cuda }: Machine): number {
  const [built, version] = CUDA.exec(name) ?? [];
  if (built === undefined) return 1;
  const major = Number(version ?? 0);
  // A build for a newer CUDA than the driver's would not start.
  return cuda === undefined || major > cuda ? 0 : 2 + major;
}
