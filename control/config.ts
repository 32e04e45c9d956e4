/** Control's configuration: `/etc/heddle/control.yaml`. */
import { z } from "zod";
import { HeddleError } from "@heddle/proto/error";
import { type Address, isLoopback, parseAddress } from "@heddle/common/address";
import { duration, parseDurationMs, parseSizeBytes } from "@heddle/common/duration";
import { IDENTITY_NAME } from "@heddle/common/identity";
import { enginesSchema, type WantedEngine, wantedEngines } from "./core/catalog/engines_wanted.ts";
import { type TlsFiles, tlsFilesSchema } from "@heddle/common/mtls_files";
import { DEFAULT_TIMINGS, type Timings } from "./core/timings.ts";
import type { IssuingFiles } from "./edge/identity/issuing.ts";
import type { PostgresFiles } from "./edge/store/postgres/files.ts";
import {
  usageConflicts,
  usageSchema,
  type UsageSettings,
  usageSettingsOf,
} from "./core/usage/usage_config.ts";

/** Routers report every 2 s; a lease shorter than two reports would end with one that is late. */
const ROUTER_LEASE_MS_MIN = 4_000;

/** Below this a busy machine or database would lose the lease, and one in a minute never return. */
const LEASE_MS_MIN = 2_000;
const LEASE_MS_MAX = 60_000;

/** A third of it must leave time for a call; a box that is gone should not be asked for an hour. */
const ATTACH_LEASE_MS_MIN = 3_000;
const ATTACH_LEASE_MS_MAX = 600_000;

/** What a control is called that has no other beside it. */
const ONLY_CONTROL = "control";

/** Turns a limit off. */
const OFF = "off";

const timingSchema = z.strictObject({
  heartbeat: duration().default("5s").describe("How often an agent sends a heartbeat"),
  unreachable: duration().default("15s")
    .describe("Silence after which a node is unreachable: it keeps serving, nothing new is placed"),
  lost: duration().default("60s")
    .describe("Silence after which a node is lost: what ran there is rebuilt elsewhere"),
  settle: duration().default("60s")
    .describe("How long control waits after its start for all known nodes before it places"),
  scale_up_window: duration().default("30s")
    .describe("How long demand must have called for more before replicas are added"),
  scale_down_window: duration().default("60s")
    .describe("How long demand must have been low, and control settled, before any are taken away"),
  drain_grace: duration().default("5m")
    .describe("Longest wait of a drain, for a replacement and then for requests in flight"),
  backoff_first: duration().default("10s")
    .describe("Wait before the second start of a model whose replica failed; doubles each time"),
  backoff_max: duration().default("10m")
    .describe("Longest wait between two starts of a model that keeps failing"),
  router_lease: duration().default("10s")
    .describe("How long a router counts after its last report"),
  idle: duration().default("10m")
    .describe("How long a model with scaling.min 0 stays up after the last demand for it"),
  attach_lease: duration().default("30s")
    .describe("How long a claim of an attached engine holds; its agent renews it at a third"),
  lease: duration().default("10s")
    .describe("How long after the last word of a control that led another one takes over"),
});

const postgresSchema = z.strictObject({
  address: listen("127.0.0.1:5432").describe("host:port of the server"),
  database: z.string().min(1).default("heddle").describe("Name of the database"),
  user: z.string().min(1).default("heddle").describe("User that owns it"),
  password_file: z.string().min(1).optional()
    .describe("File with the user's password; absent where the server asks for none"),
  ca_file: z.string().min(1).optional()
    .describe(
      "PEM of the authorities that the server's certificate is checked against; may be left out only on loopback",
    ),
});

/** The schema of control.yaml. Durations stay text here; `settingsOf` turns them into ms. */
export const configSchema = z.strictObject({
  cluster: z.string()
    .regex(IDENTITY_NAME, { error: 'want letters, digits, ".", "_" and "-", as in "prod-1"' })
    .describe("Name of the cluster, as it stands in every certificate"),
  name: z.string()
    .regex(IDENTITY_NAME, { error: 'want letters, digits, ".", "_" and "-", as in "control-1"' })
    .default(ONLY_CONTROL)
    .describe("Name of this control among several, as operators see it"),
  agents: z.strictObject({
    listen: listen("127.0.0.1:7443")
      .describe("host:port where agents and routers connect"),
  }).prefault({}).describe("Listener for agents and routers: mutual TLS"),
  join: z.strictObject({
    listen: listen("127.0.0.1:7444")
      .describe("host:port where agents of attached engines join by token and renew their leases"),
  }).optional().describe(
    "Listener for engines that something else started; absent: none can attach. Needs issuing, except on loopback without tls",
  ),
  admin: z.strictObject({
    listen: listen("127.0.0.1:9090")
      .describe("host:port where operators connect"),
    tokens_file: z.string().min(1).optional().describe(
      "File with a line NAME ROLE HASH for each bearer token that is let in, beside operators' certificates; read again on SIGHUP",
    ),
  }).prefault({}).describe(
    "Listener for operators: TLS, with a certificate of role operator or a token",
  ),
  metrics: z.strictObject({
    listen: listen("127.0.0.1:9093")
      .describe("host:port of /metrics, /health and /ready; plain HTTP"),
    tls_listen: z.string().refine((text) => parsedAddress(text) !== undefined, {
      error: "want host:port, as in 10.0.0.7:9193",
    }).optional().describe(
      "host:port of the same with mutual TLS, for scrapers with a monitor's or an operator's certificate; needs tls",
    ),
  }).prefault({}).describe("Listener for scrapers and probes"),
  console: z.strictObject({
    listen: loopback()
      .describe(
        "host:port on loopback where the console is, in plain HTTP and without logging in; absent: only beside the admin API",
      ),
    endpoint: z.url({
      protocol: /^https?$/,
      error: 'want a URL such as "https://models.example.com/v1"',
    })
      .optional()
      .describe("Base URL of a router's OpenAI API, for the console's playground"),
  }).prefault({}).describe("The web page for operators; it is on the admin listener in any case"),
  tls: tlsFilesSchema.optional()
    .describe("Control's certificate; may be left out only when every listener is on loopback"),
  issuing: z.strictObject({
    certificate_file: z.string().min(1).describe("PEM of the fleet's authority"),
    key_file: z.string().min(1).describe("PEM of its key, readable by control alone"),
  }).optional().describe(
    "Authority with which control renews the certificates of agents and routers; absent: it renews none",
  ),
  catalog_file: z.string().min(1).default("/etc/heddle/catalog.yaml")
    .describe("File that declares the models; watched for changes"),
  state_directory: z.string().min(1).default("/var/lib/heddle/control")
    .describe("Folder of control's store, unless that is in PostgreSQL"),
  store: z.strictObject({
    postgres: postgresSchema.optional()
      .describe("PostgreSQL, which several controls share; absent for SQLite and one control"),
  }).prefault({}).describe("Where control keeps what must survive"),
  engines: enginesSchema.optional()
    .describe("Engines that every node is to have; left out: nodes keep what they have"),
  usage: usageSchema.prefault({}).describe("What is kept of what was used"),
  weights: z.strictObject({
    free_below: z.string().refine((text) => text === OFF || parseSizeBytes(text) !== undefined, {
      error: 'want a size such as "20GiB", or "off"',
    }).default("20GiB").describe(
      "Free room on a node's disk of weights below which control removes fetched weights that nobody asks for; off: it removes none by itself",
    ),
  }).prefault({}).describe("What becomes of weights that no model asks for"),
  timing: timingSchema.prefault({}).describe("Durations that decide when control acts"),
}).superRefine((config, context) => {
  const complain = (path: readonly string[], message: string) =>
    context.addIssue({ code: "custom", path: [...path], message });
  if (config.join !== undefined && config.tls !== undefined && config.issuing === undefined) {
    complain(
      ["join"],
      "needs the issuing section: joining is exchanging a token for a certificate",
    );
  }
  for (const name of ["agents", "admin", "join"] as const) {
    const address = parsedAddress(config[name]?.listen ?? "");
    if (config.tls === undefined && address !== undefined && !isLoopback(address.host)) {
      complain(
        [name, "listen"],
        `without the tls section only loopback is allowed, as in 127.0.0.1:${address.port}`,
      );
    }
  }
  if (config.metrics.tls_listen !== undefined && config.tls === undefined) {
    complain(["metrics", "tls_listen"], "needs the tls section");
  }
  for (const [path, message] of [...listenConflicts(config), ...storeConflicts(config)]) {
    complain(path, message);
  }
  for (const [key, message] of usageConflicts(config.usage)) complain(["usage", key], message);
  for (const [key, message] of timingConflicts(config.timing)) complain(["timing", key], message);
});

export type Config = z.output<typeof configSchema>;

/** The configuration as the program uses it: addresses parsed, durations in milliseconds. */
export interface Settings {
  readonly cluster: string;
  readonly agents: Address;
  readonly admin: Address;
  /** Where attached engines join; undefined: nowhere. */
  readonly join?: Address;
  readonly metrics: Address;
  /** Where the same is served to whoever shows a certificate; undefined: nowhere. */
  readonly metricsTls: Address | undefined;
  readonly console: { readonly listen: Address | undefined; readonly endpoint: string | undefined };
  readonly tls: TlsFiles | undefined;
  /** Undefined: operators show certificates. */
  readonly tokensFile: string | undefined;
  readonly issuing: IssuingFiles | undefined;
  readonly name: string;
  readonly catalogFile: string;
  readonly stateDirectory: string;
  /** Undefined: SQLite in `stateDirectory`. */
  readonly postgres: PostgresFiles | undefined;
  /** Undefined: no word on engines. */
  readonly engines?: readonly WantedEngine[];
  readonly usage: UsageSettings;
  /** Free bytes below which unused weights go; undefined: they stay. */
  readonly weightsFreeBelowBytes?: number | undefined;
  readonly leaseMs: number;
  readonly timings: Timings;
}

/** Converts a validated configuration. */
export function settingsOf(config: Config): Settings {
  return {
    cluster: config.cluster,
    agents: parseAddress(config.agents.listen),
    admin: parseAddress(config.admin.listen),
    ...(config.join === undefined ? {} : { join: parseAddress(config.join.listen) }),
    metrics: parseAddress(config.metrics.listen),
    metricsTls: config.metrics.tls_listen === undefined
      ? undefined
      : parseAddress(config.metrics.tls_listen),
    console: {
      listen: config.console.listen === undefined ? undefined : parseAddress(config.console.listen),
      endpoint: config.console.endpoint,
    },
    tls: config.tls,
    tokensFile: config.admin.tokens_file,
    issuing: config.issuing,
    name: config.name,
    catalogFile: config.catalog_file,
    stateDirectory: config.state_directory,
    postgres: postgresFilesOf(config.store.postgres),
    ...(config.engines === undefined ? {} : { engines: wantedEngines(config.engines) }),
    usage: usageSettingsOf(config.usage),
    weightsFreeBelowBytes: parseSizeBytes(config.weights.free_below),
    leaseMs: ms(config.timing.lease),
    timings: {
      ...timingsOf(config.timing),
      attachLeaseMs: config.join === undefined ? 0 : ms(config.timing.attach_lease),
    },
  };
}

function postgresFilesOf(
  config: z.output<typeof postgresSchema> | undefined,
): PostgresFiles | undefined {
  if (config === undefined) return undefined;
  return {
    address: parseAddress(config.address),
    database: config.database,
    user: config.user,
    passwordFile: config.password_file,
    caFile: config.ca_file,
  };
}

function timingsOf(timing: z.output<typeof timingSchema>): Timings {
  return {
    ...DEFAULT_TIMINGS,
    heartbeatMs: ms(timing.heartbeat),
    unreachableMs: ms(timing.unreachable),
    lostMs: ms(timing.lost),
    settleMs: ms(timing.settle),
    scaleUpWindowMs: ms(timing.scale_up_window),
    scaleDownWindowMs: ms(timing.scale_down_window),
    drainGraceMs: ms(timing.drain_grace),
    routerLeaseMs: ms(timing.router_lease),
    idleMs: ms(timing.idle),
    backoff: { firstMs: ms(timing.backoff_first), maxMs: ms(timing.backoff_max) },
  };
}

function ms(text: string): number {
  const value = parseDurationMs(text);
  if (value === undefined) {
    throw new HeddleError("invalid_input", `Cannot read duration "${text}"`);
  }
  return value;
}

function loopback() {
  return z.string().refine((text) => {
    const address = parsedAddress(text);
    return address !== undefined && isLoopback(address.host);
  }, { error: 'want host:port on loopback, as in "127.0.0.1:9094"' }).optional();
}

function listen(fallback: string) {
  return z.string().superRefine((text, context) => {
    try {
      parseAddress(text);
    } catch {
      context.addIssue({
        code: "custom",
        message: "want host:port, with IPv6 in brackets as in [::1]:9090",
      });
    }
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

type Complaints = readonly (readonly [path: readonly string[], message: string])[];

function listenConflicts(
  config:
    & Record<"agents" | "admin" | "metrics", { listen: string }>
    & { readonly console: { readonly listen?: string | undefined } }
    & { readonly join?: { readonly listen: string } | undefined },
): Complaints {
  const names = ["agents", "admin", "metrics", "console", "join"] as const;
  return names.flatMap((name, index) =>
    names.slice(0, index)
      .filter((other) => {
        const listen = config[name]?.listen;
        return listen !== undefined && listen === config[other]?.listen && !listen.endsWith(":0");
      })
      .map((other) =>
        [[name, "listen"], `is the address of ${other}.listen too; want one for each`] as const
      )
  );
}

function storeConflicts({ name, store: { postgres } }: {
  readonly name: string;
  readonly store: { readonly postgres?: z.output<typeof postgresSchema> | undefined };
}): Complaints {
  if (postgres === undefined) return [];
  const found: (readonly [readonly string[], string])[] = [];
  if (name === ONLY_CONTROL) {
    found.push([["name"], "with store.postgres every control needs a name of its own"]);
  }
  const address = parsedAddress(postgres.address);
  if (postgres.ca_file === undefined && address !== undefined && !isLoopback(address.host)) {
    found.push([
      ["store", "postgres", "ca_file"],
      `without it the server's certificate is not checked: want it for ${postgres.address}`,
    ]);
  }
  return found;
}

function timingConflicts(
  timing: z.output<typeof timingSchema>,
): readonly (readonly [keyof typeof timing, string])[] {
  const value = (key: keyof typeof timing) => parseDurationMs(timing[key]) ?? NaN;
  const found: [keyof typeof timing, string][] = [];
  for (const key of ["heartbeat", "backoff_first"] as const) {
    if (value(key) === 0) found.push([key, "want more than 0s"]);
  }
  if (value("unreachable") < 2 * value("heartbeat")) {
    found.push(["unreachable", "want at least twice heartbeat: one late heartbeat is no silence"]);
  }
  if (value("lost") <= value("unreachable")) {
    found.push(["lost", "want more than unreachable: a node is unreachable before it is lost"]);
  }
  if (value("backoff_max") < value("backoff_first")) {
    found.push(["backoff_max", "want at least backoff_first"]);
  }
  if (value("attach_lease") < ATTACH_LEASE_MS_MIN || value("attach_lease") > ATTACH_LEASE_MS_MAX) {
    found.push([
      "attach_lease",
      `want ${ATTACH_LEASE_MS_MIN / 1_000}s to ${ATTACH_LEASE_MS_MAX / 60_000}m`,
    ]);
  }
  if (value("lease") < LEASE_MS_MIN || value("lease") > LEASE_MS_MAX) {
    found.push(["lease", `want ${LEASE_MS_MIN / 1_000}s to ${LEASE_MS_MAX / 1_000}s`]);
  }
  if (value("router_lease") < ROUTER_LEASE_MS_MIN) {
    found.push(["router_lease", `want at least ${ROUTER_LEASE_MS_MIN / 1_000}s`]);
  }
  return found;
}
