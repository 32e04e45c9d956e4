import { deepEqual, equal } from "node:assert/strict";
import { formatComplaints, parseConfig } from "@heddle/common/config_file";
import { adoptReadyMs, configSchema, controlUrls, metricsAddress } from "./config.ts";

const MINIMAL = "control: ['http://127.0.0.1:7443']\n";

function complaints(text: string): string[] {
  const parsed = parseConfig(configSchema, text, "a");
  return parsed.kind === "ok" ? [] : formatComplaints(parsed.complaints).split("\n");
}

function parse(text: string) {
  return configSchema.parse(JSON.parse(text));
}

Deno.test("configSchema needs only where control is", () => {
  const config = parse('{"control":["http://127.0.0.1:7443"]}');
  equal(config.state_directory, "/var/lib/heddle/agent");
  deepEqual(config.engine_ports, { first: 20_000, last: 31_999, block: 256 });
  deepEqual(metricsAddress(config), { host: "127.0.0.1", port: 9092 });
  deepEqual(config.engines, []);
  equal(adoptReadyMs(config), 60_000);
  equal(adoptReadyMs({ ...config, adopt_ready_timeout: "1m30s" }), 90_000);
});

Deno.test("the example has every key and is valid", async () => {
  const text = await Deno.readTextFile(new URL("../examples/agent.yaml", import.meta.url));
  deepEqual(complaints(text), []);
  for (const key of Object.keys(configSchema.shape)) {
    equal(new RegExp(`^(?:# )?${key}:`, "m").test(text), true, key);
  }
});

Deno.test("controlUrls() keeps the order of preference and drops what is there twice", () => {
  const config = parse(
    '{"control":["http://127.0.0.1:7444","http://127.0.0.1:7443/","http://127.0.0.1:7444"]}',
  );
  deepEqual(controlUrls(config), ["http://127.0.0.1:7444", "http://127.0.0.1:7443"]);
});

Deno.test("configSchema refuses a scheme that contradicts the TLS settings", () => {
  const tls = "tls: {certificate_file: /a, key_file: /b, ca_file: /c}\n";
  deepEqual(complaints(`control: ['https://c:7443', 'http://127.0.0.1:7443']\n${tls}`), [
    'a:1:29: control[1]: Cannot use control address "http://127.0.0.1:7443": tls is configured, ' +
    "so it must begin with https://",
  ]);
  deepEqual(complaints("control: ['http://10.0.0.1:7443']\n"), [
    'a:1:11: control[0]: Cannot use control address "http://10.0.0.1:7443": without TLS only ' +
    "loopback is allowed",
  ]);
  equal(
    complaints("control: []\n")[0],
    "a:1:10: control: want at least one URL, as in https://control-1:7443",
  );
});

Deno.test("configSchema refuses fabrics that a replica could span", () => {
  const fabrics = (text: string) => complaints(`${MINIMAL}fabrics: ${text}\n`);
  deepEqual(fabrics("[{name: a, hcas: []}]"), [
    "a:2:27: fabrics[0].hcas: a fabric needs at least one HCA",
  ]);
  deepEqual(fabrics("[{name: a, hcas: [mlx5_0]}, {name: a, hcas: [mlx5_1]}]"), [
    'a:2:45: fabrics[1].name: fabric "a" is there twice',
  ]);
  for (
    const [one, other] of [["mlx5_0", "mlx5_0"], ["mlx5_0", "'mlx5_0:1'"], ["'mlx5_0:1'", "mlx5_0"]]
  ) {
    const [complaint = ""] = fabrics(`[{name: a, hcas: [${one}]}, {name: b, hcas: [${other}]}]`);
    equal(
      complaint.replace(/^a:2:\d+: /, ""),
      `fabrics[1].hcas[0]: ${
        other?.replaceAll("'", "")
      } is already on fabric "a": an adapter is on one fabric`,
    );
  }
  deepEqual(
    fabrics("[{name: a, hcas: ['mlx5_0:1']}, {name: b, hcas: ['mlx5_0:2', mlx5_1, mlx5_10]}]"),
    [],
  );
  deepEqual(fabrics("[{name: a, hcas: [mlx5_0, mlx5_0]}]").length, 1);
});

Deno.test("configSchema refuses paths, ports, engines and names that cannot be meant", () => {
  const wrong = (text: string) => complaints(MINIMAL + text).map((line) => line.split(": ")[1]);
  deepEqual(wrong("state_directory: here\n"), ["state_directory"]);
  deepEqual(wrong("engines: [{name: vllm, path: vllm}]\n"), ["engines[0].path"]);
  deepEqual(wrong("engines: [{name: tgi, path: /x}]\n"), ["engines[0].name"]);
  deepEqual(wrong("engine_env: {'A-B': x}\n").length, 1);
  deepEqual(wrong("engine_ports: {first: 20000, last: 20100}\n"), ["engine_ports.last"]);
  deepEqual(wrong("model_dirs: []\n"), ["model_dirs"]);
  deepEqual(wrong("adopt_ready_timeout: 60\n"), ["adopt_ready_timeout"]);
  deepEqual(wrong("adopt_ready_timeout: 0s\n"), ["adopt_ready_timeout"]);
  deepEqual(wrong("node: 'a b'\n"), ["node"]);
  deepEqual(wrong("metrics: {listen: '9092'}\n"), ["metrics.listen"]);
  deepEqual(wrong("engine: []\n"), ["engine"]);
});
