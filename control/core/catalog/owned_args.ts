/**
 * Engine flags that Heddle sets itself. A profile that set them too would move the engine away from
 * where the router looks, show its key, or size it differently from the GPUs it was given.
 */
import type { z } from "zod";

type EngineName = "vllm" | "sglang" | "llamacpp" | "sim";

const VLLM: readonly string[] = [
  ...["--model", "--host", "--port", "--uds", "--served-model-name", "--api-key"],
  ...["--ssl-keyfile", "--ssl-certfile", "--root-path", "--config"],
  ...["--tensor-parallel-size", "-tp", "--pipeline-parallel-size", "-pp"],
  ...["--data-parallel-size", "-dp", "--data-parallel-size-local", "-dpl"],
  ...["--data-parallel-start-rank", "-dpr", "--data-parallel-rank", "-dpn"],
  ...["--data-parallel-address", "-dpa", "--data-parallel-rpc-port", "-dpp"],
  ...["--data-parallel-backend", "-dpb", "--data-parallel-external-lb", "-dpe"],
  ...["--data-parallel-hybrid-lb", "-dph", "--data-parallel-multi-port-external-lb", "-dpm"],
  ...["--data-parallel-supervisor-port", "--prefill-context-parallel-size", "-pcp"],
  ...["--device", "--device-ids"],
  ...["--nnodes", "--node-rank", "--master-addr", "--master-port", "--headless"],
  // A profile's stop_timeout says how long it may take.
  ...["--distributed-executor-backend", "--shutdown-timeout"],
];

const OWNED: Readonly<Record<EngineName, readonly string[]>> = {
  vllm: VLLM,
  sglang: [
    ...["--model-path", "--model", "--host", "--port", "--served-model-name", "--config"],
    ...["--api-key", "--admin-api-key", "--ssl-keyfile", "--ssl-certfile"],
    ...["--tp-size", "--tensor-parallel-size", "--tp", "--pp-size", "--pipeline-parallel-size"],
    ...["--pp", "--dp-size", "--data-parallel-size", "--dp"],
    ...["--attn-dp-size", "--attention-data-parallel-size", "--moe-dp-size"],
    ...["--moe-data-parallel-size", "--attn-cp-size", "--attention-context-parallel-size"],
    ...["--nnodes", "--node-rank", "--dist-init-addr", "--nccl-init-addr", "--nccl-port"],
    ...["--base-gpu-id", "--gpu-id-step", "--device"],
  ],
  llamacpp: [
    ...["--model", "-m", "--model-url", "-mu", "--hf-repo", "-hf", "-hfr", "--hf-file", "-hff"],
    ...["--hf-token", "-hft", "--docker-repo", "-dr", "--alias", "-a", "--host", "--port"],
    ...["--api-key", "--api-key-file", "--ssl-key-file", "--ssl-cert-file", "--api-prefix"],
    ...["--models-dir", "--models-preset", "--models-max", "--models-autoload"],
    ...["--device", "-dev", "--main-gpu", "-mg", "--rpc", "--tools", "--agent"],
  ],
  sim: [...VLLM],
};

/**
 * Whose argument parser takes a flag's beginning for it, however short, where no other flag of its
 * version begins so. Which those are differs by version: every beginning of an owned one is refused,
 * for it is that flag, or none at all.
 */
const ABBREVIATES: readonly EngineName[] = ["vllm", "sglang", "sim"];

/** Complains about each argument that is one of Heddle's own, at its place in `args`. */
export function checkArgs(
  engine: EngineName,
  args: readonly string[],
  context: z.core.$RefinementCtx,
): void {
  args.forEach((arg, index) => {
    const flag = ownedFlag(engine, arg);
    if (flag === undefined) return;
    context.addIssue({
      code: "custom",
      path: ["args", index],
      message: `${flag} is set by Heddle; leave it out`,
    });
  });
}

/** The flag of Heddle's that an argument sets, in any spelling the engines' parsers accept. */
function ownedFlag(engine: EngineName, arg: string): string | undefined {
  const abbreviates = ABBREVIATES.includes(engine);
  // vLLM and SGLang take underscores for hyphens, and dotted keys below a flag.
  const spelled = arg.trim().split(abbreviates ? /[=\s.]/ : /[=\s]/, 1)[0] ?? "";
  if (!/^--?[^-]/.test(spelled)) return undefined;
  const flag = spelled.startsWith("--") ? spelled.toLowerCase().replaceAll("_", "-") : spelled;
  const owned = OWNED[engine];
  if (owned.includes(flag)) return flag;
  return abbreviates ? owned.find((each) => each.startsWith(flag)) : undefined;
}
