/**
 * Where a Python engine's wheel for this machine's driver comes from. A wheel says nothing of the CUDA
 * that it was built for, so that the wrong one is found out when the first model is loaded.
 */
import { isOlder } from "../version_order.ts";
import { type Driver, needsDriver } from "./cuda.ts";
import type { InstallRequest } from "./install_documents.ts";

export type Wheel =
  /** Arguments of `uv pip install`. */
  | { readonly kind: "from"; readonly args: readonly string[] }
  | {
    readonly kind: "none";
    readonly reason: "driver_missing" | "driver_too_old";
    readonly why: string;
  };

/** From this version on, vLLM's wheel on the public index is built for CUDA 13. */
const VLLM_CUDA_13 = "0.21.0";
/**
 * From this version on SGLang's wheel, and what it pins, is for CUDA 13. What it built for CUDA 12 up to
 * 0.5.19 has to replace packages in an environment that is there already: no wheel to choose.
 */
const SGLANG_CUDA_13 = "0.5.11";
/** What vLLM still builds beside that one, under addresses of its own. */
const VLLM_CUDA_12 = "cu129";
/** Nothing that Heddle knows flags of was built for an older one. */
const OLDEST_CUDA = 12;

/** Some of what it needs is only there as pre-releases, which uv before 0.12 passes over. */
const PRE_RELEASES = ["--prerelease", "allow"] as const;

/** Pure. An index or packages that the operator names are taken as they are. */
export function chooseWheel(
  request: Pick<InstallRequest, "engine" | "version" | "index" | "packages">,
  machine: Driver,
): Wheel {
  const { engine, version, index, packages } = request;
  const besides = engine === "sglang" ? PRE_RELEASES : [];
  if (index.startsWith("/")) return from("--no-index", "--find-links", index, ...besides);
  if (index !== "") return from("--default-index", index, ...besides);
  if (engine === "llamacpp" || packages.length > 0) return from(...besides);
  if (machine.driver === "") {
    return {
      kind: "none",
      reason: "driver_missing",
      why: "it runs on NVIDIA GPUs, and this node has no driver; for another build name an index " +
        "or packages",
    };
  }
  const since = engine === "vllm" ? VLLM_CUDA_13 : SGLANG_CUDA_13;
  const built = isOlder(version, since) ? OLDEST_CUDA : 13;
  const cuda = machine.cuda ?? 0;
  if (cuda >= built) return from(...besides);
  if (cuda < OLDEST_CUDA) {
    const why = `it ${needsDriver(OLDEST_CUDA, machine.driver)}`;
    return { kind: "none", reason: "driver_too_old", why };
  }
  if (engine === "sglang") {
    const why =
      `it is built for CUDA 13 and ${needsDriver(built, machine.driver)}; versions before ` +
      `${SGLANG_CUDA_13} are built for CUDA 12, and of other builds name an index or packages`;
    return { kind: "none", reason: "driver_too_old", why };
  }
  return from(
    ...["--extra-index-url", `https://wheels.vllm.ai/${version}/${VLLM_CUDA_12}`],
    ...["--torch-backend", VLLM_CUDA_12],
    // The same version is on both indexes; the one with the suffix of its CUDA counts as newer.
    ...["--index-strategy", "unsafe-best-match"],
  );
}

function from(...args: readonly string[]): Wheel {
  return { kind: "from", args };
}
