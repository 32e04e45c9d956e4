/** The endpoints of router.yaml as a routing table. */
import { errorText, HeddleError } from "@heddle/proto/error";
import type { Settings, StaticEndpoint } from "./settings/settings.ts";
import type { Endpoint, Model } from "./core/fleet/endpoint.ts";
import { apply, EMPTY_TABLE, type Table } from "./core/fleet/table.ts";

/** Reads the key files and builds the table. Throws `invalid_input` for a file it cannot read. */
export async function staticTable(
  settings: Pick<Settings, "endpoints" | "models">,
  nowMs: number,
): Promise<Table> {
  const endpoints = (await Promise.all(settings.endpoints.map(endpointsOf))).flat();
  const names = [...new Set(endpoints.map(({ model }) => model))];
  const models = names.map((name): Model => {
    const declared = settings.models.find((model) => model.name === name);
    return {
      name,
      aliases: declared?.aliases ?? [],
      fallbacks: declared?.fallbacks ?? [],
      routingProfile: "",
      reason: "",
      wakeable: false,
      createdS: Math.floor(nowMs / 1_000),
    };
  });
  return apply({ table: EMPTY_TABLE, pending: [] }, {
    revision: EMPTY_TABLE.revision,
    snapshot: true,
    snapshotEnd: true,
    models,
    removedModels: [],
    endpoints,
    removedReplicas: [],
    settledNodes: [],
    settled: true,
  }).table;
}

// A server of several models is an endpoint for each of them: one may fail while others work.
async function endpointsOf(endpoint: StaticEndpoint): Promise<Endpoint[]> {
  const apiKey = endpoint.keyFile === undefined ? "" : await readKey(endpoint.keyFile);
  return endpoint.models.map(({ name, servedName }) => ({
    replicaId: endpoint.models.length === 1 ? endpoint.name : `${endpoint.name}/${name}`,
    model: name,
    origin: endpoint.origin,
    node: "",
    engine: "",
    profile: "",
    servedName,
    apiKey,
    weight: endpoint.weight,
    priority: endpoint.priority,
    draining: false,
    degraded: false,
    maxModelLen: undefined,
  }));
}

async function readKey(file: string): Promise<string> {
  let text: string;
  try {
    text = await Deno.readTextFile(file);
  } catch (error) {
    throw new HeddleError("invalid_input", `Cannot read ${file}: ${errorText(error)}`, {
      cause: error,
    });
  }
  const key = text.trim();
  // What stands in a header must be one word of visible characters.
  if (!/^[\x21-\x7e]+$/.test(key)) {
    throw new HeddleError("invalid_input", `Cannot use ${file}: want one key and nothing else`);
  }
  return key;
}
