/** The configuration as the program uses it: addresses parsed, durations and sizes converted. */
import { type Address, parseAddress } from "@heddle/common/address";
import { parseDurationMs, parseSizeBytes } from "@heddle/common/duration";
import type { TlsFiles } from "@heddle/common/mtls_files";
import { HeddleError } from "@heddle/proto/error";
import { type Config, NONE } from "./fields.ts";
import { parseOrigin } from "./parse.ts";
import {
  admissionOf,
  type AdmissionSettings,
  schedulingOf,
  type SchedulingSettings,
} from "./scheduling.ts";
import type { Origin } from "../core/fleet/endpoint.ts";
import type { CorsPolicy } from "../core/policy/cors.ts";
import { type Network, parseNetwork } from "../core/request/network.ts";
import type { RequestPolicy } from "../core/request/request.ts";

/** `timeouts` in milliseconds. */
export interface Timeouts {
  readonly connectMs: number;
  readonly firstByteMs: number;
  readonly firstBytePer1kTokensMs: number;
  /** Infinity for none. */
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

/** Where the certificate of the OpenAI API lies. */
export interface ServerTlsFiles {
  readonly certificate_file: string;
  readonly key_file: string;
}

/** Who may call. */
export interface KeySettings {
  readonly policy: Config["keys"]["policy"];
  /** With `key_file`. */
  readonly file: string | undefined;
  /** With `control`, when keys are refused once control has been away for so long. */
  readonly cutOff: { readonly afterMs: number } | undefined;
}

/** The configuration as the program uses it: addresses parsed, durations in milliseconds. */
export interface Settings {
  readonly name: string;
  readonly listen: Address;
  /** Undefined: plain HTTP. */
  readonly tls: ServerTlsFiles | undefined;
  readonly trustedProxies: readonly Network[];
  readonly admin: Address;
  /** Where the same is served to whoever shows a certificate; undefined: nowhere. */
  readonly adminTls: Address | undefined;
  readonly heapSnapshots: boolean;
  readonly control:
    | { readonly urls: readonly string[]; readonly tls: TlsFiles | undefined }
    | undefined;
  readonly endpoints: readonly StaticEndpoint[];
  readonly models: Config["models"];
  readonly stateDirectory: string;
  readonly keys: KeySettings;
  readonly ledgerMaxBytes: number;
  readonly bodyReceivedMaxBytes: number;
  readonly bodyInflatedMaxBytes: number;
  readonly uploadMaxBytes: number;
  readonly uploadsMaxBytes: number;
  readonly requestPolicy: RequestPolicy;
  readonly cors: CorsPolicy;
  readonly requestsInFlightMax: number;
  readonly scheduling: SchedulingSettings;
  readonly admission: AdmissionSettings;
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
    tls: config.tls,
    trustedProxies: config.trusted_proxies.map(parseNetwork)
      .filter((network) => network !== undefined),
    admin: parseAddress(config.admin.listen),
    adminTls: config.admin.tls_listen === undefined
      ? undefined
      : parseAddress(config.admin.tls_listen),
    heapSnapshots: config.admin.heap_snapshots,
    control: config.control === undefined ? undefined : {
      // Order is preference; an address that stands twice is one address.
      urls: [...new Set(config.control.urls)],
      tls: config.control.tls,
    },
    endpoints: config.endpoints.map(staticEndpointOf),
    models: config.models,
    stateDirectory: config.state_directory,
    keys: keysOf(config.keys),
    ledgerMaxBytes: bytes(config.ledger.spool_max),
    bodyReceivedMaxBytes: bytes(config.bodies.received_max),
    bodyInflatedMaxBytes: bytes(config.bodies.inflated_max),
    uploadMaxBytes: bytes(config.bodies.upload_max),
    uploadsMaxBytes: bytes(config.bodies.uploads_max),
    requestPolicy: {
      controlFields: config.requests.control_fields,
      mediaUrls: config.requests.media_urls,
    },
    cors: { origins: new Set(config.cors.origins) },
    requestsInFlightMax: config.requests_in_flight_max,
    scheduling: schedulingOf(config, { ms, bytes }),
    admission: admissionOf(config, { ms, bytes }),
    timeouts: {
      connectMs: ms(config.timeouts.connect),
      firstByteMs: ms(config.timeouts.first_byte),
      firstBytePer1kTokensMs: ms(config.timeouts.first_byte_per_1k_tokens),
      wholeAnswerMs: config.timeouts.whole_answer === NONE
        ? Infinity
        : ms(config.timeouts.whole_answer),
      betweenChunksMs: ms(config.timeouts.between_chunks),
      holdMs: ms(config.timeouts.hold),
    },
    shutdownMs: ms(config.shutdown_timeout),
    snapshotAgeWarningMs: ms(config.snapshot_age_warning),
    reportIntervalMs: ms(config.report_interval),
  };
}

function keysOf(keys: Config["keys"]): KeySettings {
  const refuses = keys.policy === "control" && keys.cut_off.then === "refuse";
  return {
    policy: keys.policy,
    file: keys.policy === "key_file" ? keys.file : undefined,
    cutOff: refuses ? { afterMs: ms(keys.cut_off.after) } : undefined,
  };
}

function staticEndpointOf(endpoint: Config["endpoints"][number]): StaticEndpoint {
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
