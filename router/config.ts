/** The router's configuration: `/etc/heddle/router.yaml`. */
import { z } from "zod";
import { HeddleError } from "@heddle/proto/error";
import { type Address, isLoopback, parseAddress } from "@heddle/common/address";
import { duration, parseDurationMs, parseSizeBytes, size } from "@heddle/common/duration";
import { type TlsFiles, tlsFilesSchema } from "@heddle/common/mtls_files";
import { checkControlUrl } from "@heddle/common/rpc_client";
import type { Origin } from "./core/fleet/endpoint.ts";

const modelName = () => z.string().min(1).max(256);

const endpointSchema = z.strictObject({
  name: z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/, {
    error: 'want letters, digits, ".", "_" and "-", as in "box-1"',
  }).describe("Name of the endpoint in logs, metrics and the x-heddle-replica header"),
  url: z.string().refine((text) => parseOrigin(text) !== undefined, {
    error: 'want http:// or https:// with a host, as in "http://10.0.0.5:8000"',
  }).describe('Where the engine listens, with or without "/v1"'),
  models: z.array(z.strictObject({
    name: modelName().describe("Name that clients ask for"),
    served_name: modelName().optional()
      .describe("Name the engine knows the model by, when it is another"),
  })).min(1).describe("Models that the engine serves"),
  key_file: z.string().min(1).optional()
    .describe("File with the key that the engine wants, and nothing else"),
  weight: z.number().positive().max(1_000).default(1)
    .describe("Share of the traffic among endpoints of the same priority"),
  priority: z.int().min(-1_000).max(1_000).default(0)
    .describe("Endpoints of the highest priority are used first, others when none of these can be"),
});

const modelSchema = z.strictObject({
  name: modelName().describe("Name of a model that an endpoint of this file serves"),
  aliases: z.array(modelName()).default([]).describe("Further names for it"),
  fallbacks: z.array(modelName()).default([])
    .describe("Models to try in order when this one cannot serve"),
});

const timeoutsSchema = z.strictObject({
  connect: duration().default("3s").describe("Longest wait for a connection to an engine"),
  first_byte: duration().default("2m")
    .describe("Longest silence of an engine before a stream begins, its own queue included"),
  first_byte_per_1k_tokens: duration().default("2s")
    .describe("What is added to all of these for every 1,000 tokens of the prompt, as estimated"),
  whole_answer: duration().default("10m")
    .describe("Longest wait for an answer that is not streamed"),
  between_chunks: duration().default("2m")
    .describe("Longest silence of an engine inside an answer"),
  hold: duration().default("60s")
    .describe("Longest wait of a request for a sleeping model to start"),
});

/** The schema of router.yaml. Durations and sizes stay text here; `settingsOf` converts them. */
export const configSchema = z.strictObject({
  name: z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,62}(\/\d{1,4})?$/, {
    error: 'want a name as in "host/1"',
  }).optional().describe("Name of this router in the fleet; by default the host's name and /1"),
  listen: listen("127.0.0.1:8080").describe("host:port of the OpenAI API"),
  admin: z.strictObject({
    listen: listen("127.0.0.1:9091").describe("host:port of /metrics, /health and /ready"),
  }).prefault({}).describe("Listener for scrapers and probes; plain HTTP"),
  control: z.strictObject({
    urls: z.array(z.string().min(1)).min(1)
      .describe("Addresses of control in order of preference, as in https://control-1:7443"),
    tls: tlsFilesSchema.optional()
      .describe("This router's certificate; may be left out only for http:// on loopback"),
  }).optional().describe("Control; without it the router serves the endpoints of this file only"),
  endpoints: z.array(endpointSchema).default([])
    .describe("Engines that no control manages, instead of control's or beside them"),
  models: z.array(modelSchema).default([])
    .describe("Aliases and fallbacks of the models that these endpoints serve"),
  state_directory: z.string().min(1).default("/var/lib/heddle/router")
    .describe("Folder of the last snapshot; one router alone may use it"),
  keys: z.discriminatedUnion("policy", [
    z.strictObject({ policy: z.literal("open").describe("No key is wanted: loopback only") }),
    z.strictObject({
      policy: z.literal("key_file").describe("Clients must show a key of the file"),
      file: z.string().min(1).describe("File with one key a line; # begins a comment"),
    }),
  ]).default({ policy: "open" }).describe("Who may call the OpenAI API"),
  bodies: z.strictObject({
    received_max: size().default("64MiB").describe("Largest request body as received"),
    inflated_max: size().default("64MiB").describe("Largest request body once decompressed"),
  }).prefault({}).describe("Bounds on request bodies"),
  requests_in_flight_max: z.int().positive().default(20_000)
    .describe("Most requests at one time; more are refused with 429"),
  timeouts: timeoutsSchema.prefault({}).describe("Waits, none of which bounds a whole answer"),
  shutdown_timeout: duration().default("30s")
    .describe("How long requests in flight may go on after SIGTERM"),
  snapshot_age_warning: duration().default("5m")
    .describe("Time without control after which the log and a metric warn; serving goes on"),
  report_interval: duration().default("2s").describe("How often control is told what is in flight"),
}).superRefine((config, context) => {
  for (const [path, message] of conflictsOf(config)) {
    context.addIssue({ code: "custom", path: [...path], message });
  }
});

export type Config = z.output<typeof configSchema>;

/** `timeouts` in milliseconds. */
export interface Timeouts {
  readonly connectMs: number;
  readonly firstByteMs: number;
  readonly firstBytePer1kTokensMs: number;
  readonly wholeAnswerMs: number;
  readonly betweenChunksMs: number;
  readonly holdMs: number;
}

/** A static endpoint with its address parsed. */
export interface StaticEndpoint {
  readonly name: string;
  readonly origin: Origin;
  readonly models: readonly { readonly name: string; readonly servedName: string }[];
  readonly keyFile: string | undefined;
  readonly weight: number;
  readonly priority: number;
}

/** The configuration as the program uses it: addresses parsed, durations in milliseconds. */
export interface Settings {
  readonly name: string;
  readonly listen: Address;
  readonly admin: Address;
  readonly control:
    | { readonly urls: readonly string[]; readonly tls: TlsFiles | undefined }
    | undefined;
  readonly endpoints: readonly StaticEndpoint[];
  readonly models: Config["models"];
  readonly stateDirectory: string;
  readonly keyFile: string | undefined;
  readonly bodyReceivedMaxBytes: number;
  readonly bodyInflatedMaxBytes: number;
  readonly requestsInFlightMax: number;
  readonly timeouts: Timeouts;
  readonly shutdownMs: number;
  readonly snapshotAgeWarningMs: number;
  readonly reportIntervalMs: number;
}

/** Converts a validated configuration. `hostname` names the router when the file does not. */
export function settingsOf(config: Config, hostname: string): Settings {
  return {
    name: config.name ?? `${hostname}/1`,
    listen: parseAddress(config.listen),
    admin: parseAddress(config.admin.listen),
    control: config.control === undefined ? undefined : {
      // Order is preference; an address that stands twice is one address.
      urls: [...new Set(config.control.urls)],
      tls: config.control.tls,
    },
    endpoints: config.endpoints.map(staticEndpointOf),
    models: config.models,
    stateDirectory: config.state_directory,
    keyFile: config.keys.policy === "key_file" ? config.keys.file : undefined,
    bodyReceivedMaxBytes: bytes(config.bodies.received_max),
    bodyInflatedMaxBytes: bytes(config.bodies.inflated_max),
    requestsInFlightMax: config.requests_in_flight_max,
    timeouts: {
      connectMs: ms(config.timeouts.connect),
      firstByteMs: ms(config.timeouts.first_byte),
      firstBytePer1kTokensMs: ms(config.timeouts.first_byte_per_1k_tokens),
      wholeAnswerMs: ms(config.timeouts.whole_answer),
      betweenChunksMs: ms(config.timeouts.between_chunks),
      holdMs: ms(config.timeouts.hold),
    },
    shutdownMs: ms(config.shutdown_timeout),
    snapshotAgeWarningMs: ms(config.snapshot_age_warning),
    reportIntervalMs: ms(config.report_interval),
  };
}

function staticEndpointOf(endpoint: z.output<typeof endpointSchema>): StaticEndpoint {
  const origin = parseOrigin(endpoint.url);
  if (origin === undefined) {
    throw new HeddleError("invalid_input", `Cannot read endpoint URL "${endpoint.url}"`);
  }
  return {
    name: endpoint.name,
    origin,
    models: endpoint.models.map(({ name, served_name }) => ({
      name,
      servedName: served_name ?? name,
    })),
    keyFile: endpoint.key_file,
    weight: endpoint.weight,
    priority: endpoint.priority,
  };
}

/** Reads an engine's URL; a "/v1" at its end is ours to add and so dropped. */
function parseOrigin(text: string): Origin | undefined {
  if (!URL.canParse(text)) return undefined;
  const url = new URL(text);
  const secure = url.protocol === "https:";
  if (!secure && url.protocol !== "http:") return undefined;
  if (url.username !== "" || url.password !== "" || url.search !== "" || url.hash !== "") {
    return undefined;
  }
  return {
    secure,
    host: url.hostname.replace(/^\[|\]$/g, ""),
    port: url.port === "" ? (secure ? 443 : 80) : Number(url.port),
    basePath: url.pathname.replace(/\/+$/, "").replace(/\/v1$/, ""),
  };
}

type Complaint = readonly [path: readonly (string | number)[], message: string];

function conflictsOf(config: Config): readonly Complaint[] {
  return [
    ...listenConflicts(config),
    ...controlConflicts(config),
    ...endpointConflicts(config),
    ...nameConflicts(config),
    ...durationConflicts(config),
  ];
}

function listenConflicts(config: Config): readonly Complaint[] {
  const found: Complaint[] = [];
  const address = parsedAddress(config.listen);
  if (config.keys.policy === "open" && address !== undefined && !isLoopback(address.host)) {
    found.push([
      ["listen"],
      `with keys.policy open only loopback is allowed, as in 127.0.0.1:${address.port}; ` +
      "or set keys.policy to key_file",
    ]);
  }
  if (config.listen === config.admin.listen && !config.listen.endsWith(":0")) {
    found.push([["admin", "listen"], "is the address of listen too; want one for each"]);
  }
  return found;
}

function controlConflicts({ control, endpoints }: Config): readonly Complaint[] {
  if (control === undefined) {
    return endpoints.length > 0
      ? []
      : [[[], "want control, or endpoints, or both: a router without either serves nothing"]];
  }
  return control.urls.flatMap((url, index): Complaint[] => {
    try {
      checkControlUrl(url, control.tls !== undefined);
      return [];
    } catch (error) {
      return [[["control", "urls", index], error instanceof Error ? error.message : "invalid"]];
    }
  });
}

function endpointConflicts({ endpoints }: Config): readonly Complaint[] {
  const found: Complaint[] = [];
  const names = new Set<string>();
  for (const [index, endpoint] of endpoints.entries()) {
    if (names.has(endpoint.name)) {
      found.push([["endpoints", index, "name"], `"${endpoint.name}" stands twice`]);
    }
    names.add(endpoint.name);
    const models = endpoint.models.map(({ name }) => name);
    for (const [at, name] of models.entries()) {
      if (models.indexOf(name) < at) {
        found.push([["endpoints", index, "models", at, "name"], `"${name}" stands twice`]);
      }
    }
  }
  return found;
}

function nameConflicts({ control, endpoints, models }: Config): readonly Complaint[] {
  const found: Complaint[] = [];
  const served = new Set(endpoints.flatMap((e) => e.models.map(({ name }) => name)));
  const taken = new Set<string>(served);
  const declared = new Set<string>();
  for (const [index, model] of models.entries()) {
    if (!served.has(model.name)) {
      found.push([["models", index, "name"], `no endpoint of this file serves "${model.name}"`]);
    }
    if (declared.has(model.name)) {
      found.push([["models", index, "name"], `"${model.name}" stands twice`]);
    }
    declared.add(model.name);
    for (const [at, alias] of model.aliases.entries()) {
      if (taken.has(alias)) {
        found.push([["models", index, "aliases", at], `"${alias}" is a name or alias already`]);
      }
      taken.add(alias);
    }
  }
  // With control, a fallback may be a model that only the catalog knows.
  if (control !== undefined) return found;
  for (const [index, model] of models.entries()) {
    for (const [at, name] of model.fallbacks.entries()) {
      if (!taken.has(name)) {
        found.push([["models", index, "fallbacks", at], `no model has the name "${name}"`]);
      }
    }
  }
  return found;
}

function durationConflicts(config: Config): readonly Complaint[] {
  const found: Complaint[] = [];
  for (const key of ["connect", "first_byte", "whole_answer", "between_chunks"] as const) {
    if (parseDurationMs(config.timeouts[key]) === 0) {
      found.push([["timeouts", key], "want more than 0s"]);
    }
  }
  const reportMs = parseDurationMs(config.report_interval) ?? NaN;
  if (reportMs < 100) found.push([["report_interval"], "want at least 100ms"]);
  return found;
}

function listen(fallback: string) {
  return z.string().refine((text) => parsedAddress(text) !== undefined, {
    error: "want host:port, with IPv6 in brackets as in [::1]:8080",
  }).default(fallback);
}

// A rule across fields also runs when one of them is wrong by itself; then it has nothing to say.
function parsedAddress(text: string): Address | undefined {
  try {
    return parseAddress(text);
  } catch {
    return undefined;
  }
}

function ms(text: string): number {
  const value = parseDurationMs(text);
  if (value === undefined) {
    throw new HeddleError("invalid_input", `Cannot read duration "${text}"`);
  }
  return value;
}

function bytes(text: string): number {
  const value = parseSizeBytes(text);
  if (value === undefined) throw new HeddleError("invalid_input", `Cannot read size "${text}"`);
  return value;
}
