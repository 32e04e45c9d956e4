/** Rules across keys of the configuration, each with the path that breaks it. */
import { isLoopback } from "@heddle/common/address";
import { parseDurationMs } from "@heddle/common/duration";
import { checkControlUrl } from "@heddle/common/rpc_client";
import type { Config } from "./fields.ts";
import { parsedAddress } from "./parse.ts";

type Complaint = readonly [path: readonly (string | number)[], message: string];

/** What is wrong with `config` although each key by itself is right. */
export function conflictsOf(config: Config): readonly Complaint[] {
  return [
    ...listenConflicts(config),
    ...controlConflicts(config),
    ...endpointConflicts(config),
    ...nameConflicts(config),
    ...durationConflicts(config),
    ...browserConflicts(config),
    ...mediaConflicts(config),
    ...schedulingConflicts(config),
  ];
}

function listenConflicts(config: Config): readonly Complaint[] {
  const found: Complaint[] = [];
  const address = parsedAddress(config.listen);
  if (config.keys.policy === "open" && address !== undefined && !isLoopback(address.host)) {
    found.push([
      ["listen"],
      `with keys.policy open only loopback is allowed, as in 127.0.0.1:${address.port}; ` +
      "or set keys.policy to control or key_file",
    ]);
  }
  if (config.listen === config.admin.listen && !config.listen.endsWith(":0")) {
    found.push([["admin", "listen"], "is the address of listen too; want one for each"]);
  }
  if (config.admin.tls_listen !== undefined && config.control?.tls === undefined) {
    found.push([["admin", "tls_listen"], "needs control.tls, this router's certificate"]);
  }
  return found;
}

function controlConflicts({ control, endpoints, keys }: Config): readonly Complaint[] {
  if (control === undefined) {
    if (keys.policy === "control") {
      return [[["keys", "policy"], "keys of control want control; without it, key_file"]];
    }
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

function browserConflicts({ cors, keys }: Config): readonly Complaint[] {
  return keys.policy === "open" && cors.origins.includes("*")
    ? [[["cors", "origins"], 'with keys.policy open any web page could use the engines: no "*"']]
    : [];
}

function mediaConflicts({ requests }: Config): readonly Complaint[] {
  const { fetch, hosts } = requests.media_urls;
  const path = ["requests", "media_urls", "hosts"];
  if (fetch === "hosts" && hosts.length === 0) return [[path, "want a host, or fetch: data"]];
  return fetch !== "hosts" && hosts.length > 0
    ? [[path, `with fetch: ${fetch} no host is looked at; want fetch: hosts`]]
    : [];
}

function schedulingConflicts({ scheduling, admission }: Config): readonly Complaint[] {
  const found: Complaint[] = [];
  const scrapeMs = parseDurationMs(scheduling.scrape_interval) ?? NaN;
  if (scrapeMs > 0 && scrapeMs < 100) {
    found.push([["scheduling", "scrape_interval"], "want at least 100ms, or 0s for never"]);
  }
  const named = new Set<string>();
  for (const [index, { name }] of admission.models.entries()) {
    if (named.has(name)) {
      found.push([["admission", "models", index, "name"], `"${name}" stands twice`]);
    }
    named.add(name);
  }
  return found;
}
