/** Waits until the models are ready, and shows how far they are. */
import { createClient } from "@connectrpc/connect";
import { loadConfig } from "@heddle/common/config_file";
import { formatDurationMs } from "@heddle/common/duration";
import { readTlsFiles, tlsFilesSchema } from "@heddle/common/mtls_files";
import { connectRpc } from "@heddle/common/rpc_client";
import { delay } from "@heddle/common/task";
import { AdminService, type ModelView, type ReplicaView } from "@heddle/proto/gen/admin";
import { decodeShardState } from "@heddle/proto/shard_state";
import { HeddleError } from "@heddle/proto/error";
import { z } from "zod";

/** How often control is asked. */
const POLL_MS = 250;
/** Without news for that long, what is known so far is said again. */
const SAY_AGAIN_MS = 30_000;

const ctlConfigSchema = z.object({
  contexts: z.array(z.object({ url: z.string(), tls: tlsFilesSchema })).min(1),
});

export interface ProgressOptions {
  readonly ctlConfig: string;
  /** The router's `/v1/models`: done means that it lists what control says is ready. */
  readonly openaiUrl: string;
  readonly say: (line: string) => void;
  readonly signal: AbortSignal;
}

/** Resolves with the names of the models once all have their minimum of ready replicas. */
export async function waitUntilReady(options: ProgressOptions): Promise<string[]> {
  const context = (await loadConfig(ctlConfigSchema, options.ctlConfig)).contexts[0];
  if (context === undefined) throw new HeddleError("invalid_input", "Cannot find a context");
  const connection = connectRpc({ url: context.url, tls: await readTlsFiles(context.tls) });
  const client = createClient(AdminService, connection.transport);
  const startedAt = performance.now();
  let shown = "";
  let shownAt = 0;
  try {
    while (!options.signal.aborted) {
      const look = await Promise.all([
        client.listModels({}, { signal: options.signal, timeoutMs: 5_000 }),
        client.listReplicas({}, { signal: options.signal, timeoutMs: 5_000 }),
      ]).catch(() => undefined);
      const models = look?.[0].models ?? [];
      const state = look === undefined ? "control is starting" : describe(models, look[1].replicas);
      const elapsed = performance.now() - startedAt;
      if (state !== shown || elapsed - shownAt > SAY_AGAIN_MS) {
        options.say(`  ${formatDurationMs(elapsed).padStart(6)}  ${state}`);
        shown = state;
        shownAt = elapsed;
      }
      if (models.length > 0 && models.every((model) => model.readyReplicas >= model.minReplicas)) {
        if (await routerLists(options, models)) return models.map((model) => model.name);
      }
      await delay(POLL_MS, options.signal);
    }
  } finally {
    connection.close();
  }
  throw new HeddleError("unavailable", "Stopped before the models were ready");
}

function describe(models: readonly ModelView[], replicas: readonly ReplicaView[]): string {
  if (models.length === 0) return "control has no models yet";
  return models.map((model) => {
    if (model.readyReplicas >= model.minReplicas) return `${model.name}: ready`;
    const shards = replicas
      .filter((replica) => replica.model === model.name)
      .flatMap((replica) => replica.shards);
    if (shards.length === 0) return `${model.name}: ${model.reason || "waiting to be placed"}`;
    const states = shards.map((shard) => decodeShardState(shard.state)).join(", ");
    return `${model.name}: ${states}${model.reason === "" ? "" : ` (${model.reason})`}`;
  }).join("; ");
}

const modelListSchema = z.object({ data: z.array(z.object({ id: z.string() })) });

async function routerLists(
  options: ProgressOptions,
  models: readonly ModelView[],
): Promise<boolean> {
  try {
    const response = await fetch(`${options.openaiUrl}/models`, {
      signal: AbortSignal.timeout(2_000),
    });
    const listed = modelListSchema.parse(await response.json()).data.map((model) => model.id);
    return models.every((model) => listed.includes(model.name));
  } catch {
    return false;
  }
}
