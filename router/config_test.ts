import { deepEqual, equal } from "node:assert/strict";
import { parseConfig } from "@heddle/common/config_file";
import { configSchema } from "./config.ts";
import { type Settings, settingsOf } from "./settings/settings.ts";

function read(text: string) {
  return parseConfig(configSchema, text, "router.yaml");
}

function settings(text: string): Settings {
  const parsed = read(text);
  if (parsed.kind === "invalid") throw new Error(JSON.stringify(parsed.complaints));
  return settingsOf(parsed.value, "box");
}

function complaints(text: string): string[] {
  const parsed = read(text);
  return parsed.kind === "ok"
    ? []
    : parsed.complaints.map(({ line, path, message }) => `${line} ${path}: ${message}`);
}

const ENDPOINT =
  "endpoints: [{ name: a, url: 'http://10.0.0.5:8000/v1/', models: [{ name: m }] }]\n";

Deno.test("configSchema gives every key but the endpoints a default", () => {
  const found = settings(ENDPOINT);
  equal(found.name, "box/1");
  deepEqual(found.listen, { host: "127.0.0.1", port: 8080 });
  deepEqual(found.admin, { host: "127.0.0.1", port: 9091 });
  equal(found.stateDirectory, "/var/lib/heddle/router");
  equal(found.shutdownMs, 30_000);
  equal(found.timeouts.wholeAnswerMs, Infinity);
  equal(found.snapshotAgeWarningMs, 300_000);
  equal(found.bodyReceivedMaxBytes, 64 * 2 ** 20);
  deepEqual(found.endpoints, [{
    name: "a",
    origin: { secure: false, host: "10.0.0.5", port: 8000, basePath: "" },
    models: [{ name: "m", servedName: "m" }],
    keyFile: undefined,
    weight: 1,
    priority: 0,
  }]);
});

Deno.test("an answer that is not streamed has a time only where one is set", () => {
  const waitMs = (text: string) =>
    settings(`${ENDPOINT}timeouts: { whole_answer: ${text} }`).timeouts.wholeAnswerMs;
  deepEqual([waitMs("none"), waitMs("10m")], [Infinity, 600_000]);
  deepEqual(complaints(`${ENDPOINT}timeouts: { whole_answer: never }`), [
    '2 timeouts.whole_answer: want a duration such as "10m", or "none"',
  ]);
  equal(complaints(`${ENDPOINT}timeouts: { whole_answer: 0s }`).length, 1);
});

Deno.test("an endpoint's URL may have TLS, IPv6 and a prefix", () => {
  const urls = ["https://api.example", "http://[::1]:8000", "https://h/openai/v1", "http://h"];
  const origins = urls.map((url) =>
    settings(`endpoints: [{ name: a, url: "${url}", models: [{ name: m }] }]`).endpoints[0]?.origin
  );
  deepEqual(origins, [
    { secure: true, host: "api.example", port: 443, basePath: "" },
    { secure: false, host: "::1", port: 8000, basePath: "" },
    { secure: true, host: "h", port: 443, basePath: "/openai" },
    { secure: false, host: "h", port: 80, basePath: "" },
  ]);
});

Deno.test("controls that stand twice are one, in the order of preference", () => {
  const text = "control: { urls: ['http://127.0.0.1:2', 'http://[::1]:1', 'http://127.0.0.1:2'] }";
  deepEqual(settings(text).control?.urls, ["http://127.0.0.1:2", "http://[::1]:1"]);
});

Deno.test("configSchema says what is wrong, and where", () => {
  const cases: [text: string, complaint: string][] = [
    ["{}", "1 : want control, or endpoints, or both: a router without either serves nothing"],
    [`${ENDPOINT}speed: 1`, "2 speed: unknown key"],
    [
      `${ENDPOINT}listen: 0.0.0.0:8080`,
      "2 listen: with keys.policy open only loopback is allowed, as in 127.0.0.1:8080; " +
      "or set keys.policy to control or key_file",
    ],
    [
      `${ENDPOINT}admin: { listen: "127.0.0.1:8080" }`,
      "2 admin.listen: is the address of listen too; want one for each",
    ],
    [`${ENDPOINT}shutdown_timeout: 30`, "2 shutdown_timeout: expected string, received number"],
    [
      `${ENDPOINT}models: [{ name: x }]`,
      '2 models[0].name: no endpoint of this file serves "x"',
    ],
    [
      `${ENDPOINT}models: [{ name: m, aliases: [m] }]`,
      '2 models[0].aliases[0]: "m" is a name or alias already',
    ],
    [
      `${ENDPOINT}models: [{ name: m, fallbacks: [y] }]`,
      '2 models[0].fallbacks[0]: no model has the name "y"',
    ],
    [
      "control: { urls: ['http://10.0.0.1:7443'] }",
      '1 control.urls[0]: Cannot use control address "http://10.0.0.1:7443": ' +
      "without TLS only loopback is allowed",
    ],
    [`${ENDPOINT}timeouts: { connect: 0s }`, "2 timeouts.connect: want more than 0s"],
    [
      `${ENDPOINT}cors: { origins: ["*"] }`,
      '2 cors.origins: with keys.policy open any web page could use the engines: no "*"',
    ],
    [
      `${ENDPOINT}cors: { origins: ["https://a.example/"] }`,
      '2 cors.origins[0]: want an origin as in "https://app.example", or "*" for every one',
    ],
    [
      `${ENDPOINT}requests: { media_urls: { fetch: hosts } }`,
      "2 requests.media_urls.hosts: want a host, or fetch: data",
    ],
    [
      `${ENDPOINT}requests: { media_urls: { hosts: [a.example] } }`,
      "2 requests.media_urls.hosts: with fetch: data no host is looked at; want fetch: hosts",
    ],
    [
      `${ENDPOINT}requests: { media_urls: { fetch: hosts, hosts: ["https://a"] } }`,
      '2 requests.media_urls.hosts[0]: want a host name in lower case, or ".example.org" for all ' +
      "below it",
    ],
    [
      `${ENDPOINT}keys: { policy: control }`,
      "2 keys.policy: keys of control want control; without it, key_file",
    ],
    [`${ENDPOINT}report_interval: 1ms`, "2 report_interval: want at least 100ms"],
    [
      "endpoints: [{ name: a, url: 'ftp://x', models: [{ name: m }] }]",
      '1 endpoints[0].url: want http:// or https:// with a host, as in "http://10.0.0.5:8000"',
    ],
    [
      "endpoints: [{ name: a, url: 'http://user:pw@x', models: [{ name: m }] }]",
      '1 endpoints[0].url: want http:// or https:// with a host, as in "http://10.0.0.5:8000"',
    ],
  ];
  for (const [text, complaint] of cases) deepEqual(complaints(text), [complaint], text);
});

Deno.test("a router on every interface is allowed once it wants keys", () => {
  const text = `${ENDPOINT}listen: "[::]:8080"\nkeys: { policy: key_file, file: /etc/heddle/keys }`;
  equal(settings(text).keys.file, "/etc/heddle/keys");
});

Deno.test("keys of control are refused while control is away only where that is asked for", () => {
  const text = (cutOff: string) =>
    `control: { urls: ["http://127.0.0.1:7443"] }\nkeys: { policy: control${cutOff} }`;
  deepEqual(settings(text("")).keys, { policy: "control", file: undefined, cutOff: undefined });
  deepEqual(settings(text(", cut_off: { after: 5m, then: refuse }")).keys.cutOff, {
    afterMs: 300_000,
  });
});

Deno.test("configSchema reads admission and scheduling: bounds by band, models, weights", () => {
  const { admission, scheduling } = settings(
    `${ENDPOINT}scheduling: { scrape_interval: 500ms, profiles: { batch: { prefix: 0 } } }
admission:
  band_ceiling: gold
  bands: { bronze: { wait_max: 1h, bytes_max: 2MiB } }
  models: [{ name: m, band: bronze, capacity: 8 }, { name: other }]
`,
  );
  equal(scheduling.scrapeMs, 500);
  equal(scheduling.profiles.batch.prefix, 0);
  equal(scheduling.profiles.batch.queue, 2);
  equal(scheduling.profiles.chat.prefix, 6);
  deepEqual([admission.policy.fallback, admission.policy.ceiling], ["silver", "gold"]);
  deepEqual([...admission.policy.ofModel], [["m", "bronze"]]);
  deepEqual([...admission.capacities], [["m", 8]]);
  deepEqual(admission.bounds.bronze, {
    requestsMax: 10_000,
    bytesMax: 2 * 2 ** 20,
    waitMsMax: 3_600_000,
    promoteAfterMs: 60_000,
  });
});

Deno.test("configSchema refuses what scheduling and admission cannot work with", () => {
  deepEqual(
    complaints(`${ENDPOINT}scheduling: { scrape_interval: 10ms }\n`),
    ["2 scheduling.scrape_interval: want at least 100ms, or 0s for never"],
  );
  deepEqual(
    complaints(`${ENDPOINT}admission: { models: [{ name: m }, { name: m }] }\n`),
    ['2 admission.models[1].name: "m" stands twice'],
  );
  equal(complaints(`${ENDPOINT}scheduling: { profiles: { chat: { prefix: -1 } } }\n`).length, 1);
  equal(complaints(`${ENDPOINT}scheduling: { profiles: { chat: { speed: 1 } } }\n`).length, 1);
  equal(complaints(`${ENDPOINT}admission: { band_default: diamond }\n`).length, 1);
});
