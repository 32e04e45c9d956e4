import { deepEqual, equal, ok } from "node:assert/strict";
import { formatComplaints, parseConfig } from "@heddle/common/config_file";
import { configSchema, settingsOf } from "./config.ts";
import { DEFAULT_TIMINGS } from "./core/timings.ts";

function complaints(text: string): string[] {
  const parsed = parseConfig(configSchema, text, "c");
  return parsed.kind === "ok" ? [] : formatComplaints(parsed.complaints).split("\n");
}

Deno.test("configSchema needs only the cluster, and settingsOf() turns defaults into ms", () => {
  const parsed = parseConfig(configSchema, "cluster: lab\n", "c");
  equal(parsed.kind, "ok");
  if (parsed.kind !== "ok") return;
  deepEqual(settingsOf(parsed.value), {
    cluster: "lab",
    agents: { host: "127.0.0.1", port: 7443 },
    admin: { host: "127.0.0.1", port: 9090 },
    metrics: { host: "127.0.0.1", port: 9093 },
    metricsTls: undefined,
    console: { listen: undefined, endpoint: undefined },
    tls: undefined,
    tokensFile: undefined,
    issuing: undefined,
    name: "control",
    catalogFile: "/etc/heddle/catalog.yaml",
    stateDirectory: "/var/lib/heddle/control",
    postgres: undefined,
    usage: {
      timeZone: "UTC",
      keepRecordsMs: 35 * 86_400_000,
      keepHoursMs: 400 * 86_400_000,
    },
    weightsFreeBelowBytes: 20 * 2 ** 30,
    leaseMs: 10_000,
    timings: DEFAULT_TIMINGS,
  });
});

Deno.test("configSchema lets the removal of unused weights be switched off", () => {
  const parsed = parseConfig(configSchema, "cluster: lab\nweights: { free_below: off }\n", "c");
  equal(parsed.kind === "ok" && settingsOf(parsed.value).weightsFreeBelowBytes, undefined);
  deepEqual(complaints("cluster: lab\nweights: { free_below: much }\n"), [
    'c:2:24: weights.free_below: want a size such as "20GiB", or "off"',
  ]);
});

Deno.test("configSchema refuses listeners beyond loopback without tls, and says where", () => {
  deepEqual(
    complaints("cluster: lab\nagents: {listen: '0.0.0.0:7443'}\nadmin: {listen: '[::]:9090'}\n"),
    [
      "c:2:18: agents.listen: without the tls section only loopback is allowed, as in 127.0.0.1:7443",
      "c:3:17: admin.listen: without the tls section only loopback is allowed, as in 127.0.0.1:9090",
    ],
  );
  deepEqual(
    complaints(
      "cluster: lab\nagents: {listen: '[::]:7443'}\n" +
        "tls: {certificate_file: /a, key_file: /b, ca_file: /c}\nmetrics: {listen: '10.0.0.1:9'}\n",
    ),
    [],
  );
});

Deno.test("configSchema names unknown keys, bad values and contradictions with their places", () => {
  const cases: [string, string[]][] = [
    ["", ["c:1:1: cluster: expected string, received undefined"]],
    ["cluster: a/b\n", ['c:1:10: cluster: want letters, digits, ".", "_" and "-", as in "prod-1"']],
    ["cluster: a\nadmn: {}\n", ["c:2:1: admn: unknown key"]],
    ["cluster: a\nadmin: {listen: 9090}\n", [
      "c:2:17: admin.listen: expected string, received number",
    ]],
    ["cluster: a\nadmin: {listen: '::1:9090'}\n", [
      "c:2:17: admin.listen: want host:port, with IPv6 in brackets as in [::1]:9090",
    ]],
    ["cluster: a\nadmin: {listen: '127.0.0.1:7443'}\n", [
      "c:2:17: admin.listen: is the address of agents.listen too; want one for each",
    ]],
    ["cluster: a\nconsole: {listen: '10.0.0.1:9094', endpoint: models.example.com}\n", [
      'c:2:19: console.listen: want host:port on loopback, as in "127.0.0.1:9094"',
      'c:2:46: console.endpoint: want a URL such as "https://models.example.com/v1"',
    ]],
    ["cluster: a\nconsole: {listen: '127.0.0.1:9093'}\n", [
      "c:2:19: console.listen: is the address of metrics.listen too; want one for each",
    ]],
    ["cluster: a\nadmin: {listen: '127.0.0.1:0'}\nagents: {listen: '127.0.0.1:0'}\n", []],
    ["cluster: a\ntiming: {heartbeat: 5}\n", [
      "c:2:21: timing.heartbeat: expected string, received number",
    ]],
    ["cluster: a\ntiming: {heartbeat: soon}\n", [
      'c:2:21: timing.heartbeat: want a duration such as "5s", "20m" or "1h30m"',
    ]],
    ["cluster: a\ntiming:\n  heartbeat: 8s\n  lost: 10s\n  backoff_max: 1s\n  router_lease: 1s\n", [
      "c:3:3: timing.unreachable: want at least twice heartbeat: one late heartbeat is no silence",
      "c:4:9: timing.lost: want more than unreachable: a node is unreachable before it is lost",
      "c:5:16: timing.backoff_max: want at least backoff_first",
      "c:6:17: timing.router_lease: want at least 4s",
    ]],
  ];
  for (const [text, want] of cases) {
    deepEqual(complaints(text), want, text);
  }
});

Deno.test("configSchema takes PostgreSQL on loopback as it is, and elsewhere with its authorities", () => {
  deepEqual(complaints("cluster: a\nname: a\nstore: {postgres: {}}\n"), []);
  const parsed = parseConfig(configSchema, "cluster: a\nname: a\nstore: {postgres: {}}\n", "c");
  ok(parsed.kind === "ok");
  deepEqual(settingsOf(parsed.value).postgres, {
    address: { host: "127.0.0.1", port: 5432 },
    database: "heddle",
    user: "heddle",
    passwordFile: undefined,
    caFile: undefined,
  });
  deepEqual(complaints("cluster: a\nstore: {postgres: {address: 'db.lab:5432'}}\n"), [
    "c:1:1: name: with store.postgres every control needs a name of its own",
    "c:2:19: store.postgres.ca_file: without it the server's certificate is not checked: " +
    "want it for db.lab:5432",
  ]);
  deepEqual(
    complaints("cluster: a\nname: a\nstore: {postgres: {address: 'db:1', ca_file: /a}}\n"),
    [],
  );
  deepEqual(complaints("cluster: a\ntiming: {lease: 1s}\n"), [
    "c:2:17: timing.lease: want 2s to 60s",
  ]);
});
