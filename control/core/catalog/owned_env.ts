/**
 * Environment that a profile may not set. Some of it is Heddle's own and never free; the rest could
 * undo the two hard rules (one fabric, the GPUs that were given), so it takes `unsafe_env: true`.
 */
import type { z } from "zod";

/** Heddle's own whatever the profile says: keys, offline mode, the address an engine binds. */
const OWNED: readonly RegExp[] = [
  /^(?:VLLM_API_KEY|LLAMA_API_KEY|SGLANG_API_KEY)$/,
  /^(?:HF_TOKEN|HUGGING_FACE_HUB_TOKEN|HF_HUB_OFFLINE)$/,
  /^LLAMA_ARG_(?:HOST|PORT|API_KEY|API_KEY_FILE|ALIAS|MODEL|MODEL_URL|HF_REPO|HF_FILE)$/,
  /^HEDDLE_/,
];

/** Only say more in the log; they move no traffic. */
const HARMLESS: readonly string[] = [
  "NCCL_DEBUG",
  "NCCL_DEBUG_SUBSYS",
  "NCCL_DEBUG_TIMESTAMP_FORMAT",
];

const BREAKS_RULES: readonly RegExp[] = [
  /^(?:NCCL|RCCL|UCX|NVSHMEM|GLOO|TP_SOCKET|UCC|FI|OMPI|IBV)_/,
  /^(?:CUDA|HIP|ROCR|NVIDIA|GPU|ASCEND_RT)_(?:VISIBLE_DEVICES|DEVICE_ORDER|DEVICE_ORDINAL)$/,
  /^(?:MASTER_ADDR|MASTER_PORT|RANK|LOCAL_RANK|NODE_RANK|WORLD_SIZE|LOCAL_WORLD_SIZE)$/,
  /^(?:RAY_ADDRESS|VLLM_HOST_IP|VLLM_PORT|VLLM_DP_[A-Z_]+|HOST_IP)$/,
  /^(?:SGLANG_HOST_IP|SGLANG_LOCAL_IP_NIC|LLAMA_ARG_(?:DEVICE|MAIN_GPU|RPC))$/,
];

/** Complains about each variable that is not the profile's to set. */
export function checkEnv(
  env: Readonly<Record<string, string>>,
  unsafeEnv: boolean,
  context: z.core.$RefinementCtx,
): void {
  for (const name of Object.keys(env)) {
    const message = refusal(name, unsafeEnv);
    if (message !== undefined) context.addIssue({ code: "custom", path: ["env", name], message });
  }
}

/** Why `name` may not be set; undefined when it may. Names are compared as the kernel does. */
function refusal(name: string, unsafeEnv: boolean): string | undefined {
  if (OWNED.some((pattern) => pattern.test(name))) return "is set by Heddle; leave it out";
  if (unsafeEnv || HARMLESS.includes(name)) return undefined;
  if (!BREAKS_RULES.some((pattern) => pattern.test(name))) return undefined;
  return "can undo the fabric and GPUs that placement gave; " +
    "leave it out, or say unsafe_env: true and answer for it";
}
