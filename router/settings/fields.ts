/** Every key of router.yaml by itself. */
import { z } from "zod";
import { duration, parseDurationMs, size } from "@heddle/common/duration";
import { tlsFilesSchema } from "@heddle/common/mtls_files";
import { parseNetwork } from "../core/request/network.ts";
import { parsedAddress, parseOrigin } from "./parse.ts";
import { admissionSchema, schedulingSchema } from "./scheduling_fields.ts";

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

/** For a timeout that there is not. */
export const NONE = "none";

const timeoutsSchema = z.strictObject({
  connect: duration().default("3s").describe("Longest wait for a connection to an engine"),
  first_byte: duration().default("2m")
    .describe("Longest silence of an engine before a stream begins, its own queue included"),
  first_byte_per_1k_tokens: duration().default("2s")
    .describe("What is added to all of these for every 1,000 tokens of the prompt, as estimated"),
  whole_answer: z.string().refine((text) => text === NONE || parseDurationMs(text) !== undefined, {
    error: 'want a duration such as "10m", or "none"',
  }).default(NONE)
    .describe(
      "Longest wait for an answer that is not streamed, or none: as long as the engine lives",
    ),
  between_chunks: duration().default("2m")
    .describe("Longest silence of an engine inside an answer"),
  hold: duration().default("60s")
    .describe("Longest wait of a request for a sleeping model to start"),
});

/** Durations and sizes stay text here; `settingsOf` converts them. */
export const fieldsSchema = z.strictObject({
  name: z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,62}(\/\d{1,4})?$/, {
    error: 'want a name as in "host/1"',
  }).optional().describe("Name of this router in the fleet; by default the host's name and /1"),
  listen: listen("127.0.0.1:8080").describe("host:port of the OpenAI API"),
  tls: z.strictObject({
    certificate_file: z.string().min(1).describe("PEM file with the chain that clients are shown"),
    key_file: z.string().min(1).describe("PEM file with its private key"),
  }).optional().describe("TLS on listen; both files are read again on SIGHUP"),
  trusted_proxies: z.array(
    z.string().refine((text) => parseNetwork(text) !== undefined, {
      error: 'want an address or a network, as in "10.0.0.0/8"',
    }),
  ).default([]).describe("Proxies in front of the router, whose X-Forwarded-For is believed"),
  admin: z.strictObject({
    listen: listen("127.0.0.1:9091").describe("host:port of /metrics, /health and /ready"),
    tls_listen: z.string().refine((text) => parsedAddress(text) !== undefined, {
      error: "want host:port, as in 10.0.0.7:9191",
    }).optional().describe(
      "host:port of the same with mutual TLS, for scrapers with a monitor's or an operator's certificate; needs control.tls",
    ),
    heap_snapshots: z.boolean().default(false)
      .describe("Give this machine /debug/heap, which holds keys and prompts"),
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
    z.strictObject({
      policy: z.literal("control").describe("Clients must show a key that control knows"),
      cut_off: z.strictObject({
        after: duration().default("1h").describe("How long without control this router is cut off"),
        then: z.enum(["serve", "refuse"]).default("serve")
          .describe(
            "Cut off: go on with the keys that are known, or take none until control is back",
          ),
      }).prefault({}).describe("What becomes of keys while control is away, and cannot revoke any"),
    }),
  ]).default({ policy: "open" }).describe("Who may call the OpenAI API"),
  bodies: z.strictObject({
    received_max: size().default("64MiB").describe("Largest request body as received"),
    inflated_max: size().default("64MiB").describe("Largest request body once decompressed"),
    upload_max: size().default("256MiB").describe(
      "Largest form with a file, as for transcriptions",
    ),
    uploads_max: size().default("4GiB")
      .describe("What all uploads in flight together may take of the state directory's disk"),
  }).prefault({}).describe("Bounds on request bodies"),
  requests: z.strictObject({
    control_fields: z.enum(["strip", "refuse"]).default("strip")
      .describe("What becomes of members that steer an engine: taken out, or the request refused"),
    media_urls: z.strictObject({
      fetch: z.enum(["data", "hosts", "public"]).default("data").describe(
        "data: none; hosts: from the hosts listed; public: from any host whose name is a public one",
      ),
      hosts: z.array(
        z.string().regex(/^\.?[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$/, {
          error: 'want a host name in lower case, or ".example.org" for all below it',
        }),
      ).default([]).describe("Hosts that media are fetched from"),
    }).prefault({}).describe("Images and other media that a request names by URL"),
  }).prefault({}).describe("What clients may ask for"),
  cors: z.strictObject({
    origins: z.array(
      z.string().refine(
        (text) => text === "*" || URL.canParse(text) && new URL(text).origin === text,
        { error: 'want an origin as in "https://app.example", or "*" for every one' },
      ),
    ).default([]).describe("Web origins whose pages may call the API from a browser"),
  }).prefault({}).describe("Browsers; off unless origins are listed"),
  ledger: z.strictObject({
    spool_max: size().default("256MiB").describe(
      "Most that usage records may take of the state directory's disk while control is away",
    ),
  }).prefault({}).describe("The account of what was used, on its way to control"),
  requests_in_flight_max: z.int().positive().default(20_000)
    .describe("Most requests at one time; more are refused with 429"),
  scheduling: schedulingSchema,
  admission: admissionSchema,
  timeouts: timeoutsSchema.prefault({}).describe("Waits, none of which bounds a whole answer"),
  shutdown_timeout: duration().default("30s")
    .describe("How long requests in flight may go on after SIGTERM"),
  snapshot_age_warning: duration().default("5m")
    .describe("Time without control after which the log and a metric warn; serving goes on"),
  report_interval: duration().default("2s").describe("How often control is told what is in flight"),
});

export type Config = z.output<typeof fieldsSchema>;

function listen(fallback: string) {
  return z.string().refine((text) => parsedAddress(text) !== undefined, {
    error: "want host:port, with IPv6 in brackets as in [::1]:8080",
  }).default(fallback);
}
