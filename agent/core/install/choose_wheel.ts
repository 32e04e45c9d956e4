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
/** What vLLM still builds beside that one, under addresses of its own. */
const VLLM_CUDA_12 = "cu129";
/** Nothing that Heddle knows flags of was built for an older one. */
const OLDEST_CUDA = 12;

/** Pure. An index or packages that the operator names are taken as they are. */
export function chooseWheel(
  request: Pick<InstallRequest, "engine" | "version" | "index" | "packages">,
  machine: Driver,
): Wheel {
  const { engine, version, index, packages } = request;
  if (index.startsWith("/")) return from("--no-index", "--find-links", index);
  if (index !== "") return from("--default-index", index);
  if (engine === "llamacpp" || packages.length > 0) return from();
  if (machine.driver === "") {
    return {
      kind: "none",
      reason: "driver_missing",
      why: "it runs on NVIDIA GPUs, and this node has no driver; for another build name an index " +
        "or packages",
    };
  }
  const built = engine === "vllm" && !isOlder(version, VLLM_CUDA_13) ? 13 : OLDEST_CUDA;
  const cuda = machine.cuda ?? 0;
  if (cuda >= built) return from();
  if (cuda < OLDEST_CUDA) {
    const why = `it ${needsDriver(OLDEST_CUDA, machine.driver)}`;
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
