import { deepEqual, equal, ok } from "node:assert/strict";
import { z } from "zod";
import { formatComplaints } from "@heddle/common/config_file";
import { catalogSchema, findModel, parseCatalog } from "./catalog.ts";

const head = "models:\n  - name: m\n    source: org/weights\n";

function complaints(text: string): string {
  const parsed = parseCatalog(text, "catalog.yaml");
  return parsed.kind === "ok" ? "" : formatComplaints(parsed.complaints);
}

function withProfile(lines: string): string {
  return complaints(`${head}    profiles:\n      - name: p\n${lines}`);
}

Deno.test("parseCatalog() fills in the defaults that the docs give", () => {
  const parsed = parseCatalog(
    `${head}    profiles:\n      - name: p\n        gpu_class: h100-80g\n        tp: 4\n        pp: 2\n        nodes: 2\n`,
    "c",
  );
  ok(parsed.kind === "ok");
  const [model] = parsed.value.models;
  deepEqual(model?.scaling, { min: 1, max: 1, target: 32 });
  deepEqual(model?.aliases, []);
  equal(model?.routing_profile, "chat");
  const [profile] = model?.profiles ?? [];
  equal(profile?.engine, "vllm");
  equal(profile?.gpus_per_node, 4);
  equal(profile?.weight, 1);
  equal(profile?.startup_timeout, "20m");
});

Deno.test("parseCatalog() takes max as at least min and at least 1", () => {
  const scaled = (scaling: string) => {
    const parsed = parseCatalog(`${head}    scaling: ${scaling}\n    profiles: [{name: p}]\n`, "c");
    return parsed.kind === "ok" ? parsed.value.models[0]?.scaling : parsed.complaints[0]?.message;
  };
  deepEqual(scaled("{min: 3}"), { min: 3, max: 3, target: 32 });
  deepEqual(scaled("{min: 0}"), { min: 0, max: 1, target: 32 });
  equal(scaled("{min: 3, max: 2}"), "max 2 is below min 3");
});

Deno.test("parseCatalog() takes an empty file as no models", () => {
  deepEqual(parseCatalog("", "c"), { kind: "ok", value: { models: [] } });
});

Deno.test("parseCatalog() names file, line, column and path of an unknown key", () => {
  equal(
    withProfile("        tensor: 4\n"),
    "catalog.yaml:6:9: models[0].profiles[0].tensor: unknown key",
  );
});

Deno.test("parseCatalog() wants a source and a profile", () => {
  equal(
    complaints("models:\n  - name: m\n    profiles: []\n"),
    "catalog.yaml:2:5: models[0].source: expected string, received undefined",
  );
  equal(
    complaints("models:\n  - name: m\n    source: s\n    profiles: []\n"),
    "catalog.yaml:4:15: models[0].profiles: want at least one profile, or attach",
  );
});

Deno.test("parseCatalog() takes a model without profiles that only attached engines serve", () => {
  const model = "models:\n  - name: m\n    source: s\n    profiles: []\n    attach: [rented]\n";
  equal(
    complaints(model),
    "catalog.yaml:2:5: models[0].scaling: want min: 0: there is no profile to start one by",
  );
  equal(complaints(`${model}    scaling: { min: 0 }\n`), "");
});

Deno.test("parseCatalog() wants nodes × gpus_per_node to be tp × pp × dp", () => {
  equal(
    withProfile("        gpu_class: h100-80g\n        tp: 8\n        gpus_per_node: 4\n"),
    "catalog.yaml:8:24: models[0].profiles[0].gpus_per_node: nodes × gpus_per_node is 4, " +
      "but tp × pp × dp is 8 (8 × 1 × 1)",
  );
  equal(
    withProfile("        gpu_class: h100-80g\n        tp: 3\n        nodes: 2\n"),
    "catalog.yaml:8:16: models[0].profiles[0].nodes: tp × pp × dp is 3, " +
      "which 2 nodes cannot share evenly",
  );
});

Deno.test("parseCatalog() wants a gpu_class where GPUs are needed", () => {
  equal(
    withProfile("        tp: 2\n"),
    "catalog.yaml:6:13: models[0].profiles[0].tp: tp × pp × dp is 2, " +
      "but no gpu_class says on which GPUs",
  );
  equal(withProfile("        engine: llamacpp\n        memory: 8GiB\n"), "");
});

Deno.test("parseCatalog() refuses a name that is already an alias, and says where", () => {
  equal(
    complaints(
      "models:\n  - {name: a, aliases: [b], source: s, profiles: [{name: p}]}\n" +
        "  - {name: b, source: s, profiles: [{name: p}, {name: p}]}\n",
    ),
    'catalog.yaml:2:25: models[0].aliases[0]: "b" is already the name or alias at models[1].name\n' +
      'catalog.yaml:3:55: models[1].profiles[1].name: "p" is already the name of profiles[0]',
  );
});

Deno.test("parseCatalog() refuses fallbacks to nothing and in circles, through aliases too", () => {
  const model = (name: string, rest: string) =>
    `  - {name: ${name}, ${rest}, source: s, profiles: [{name: p}]}\n`;
  equal(
    complaints(
      "models:\n" + model("a", "fallbacks: [bee]") + model("b", "aliases: [bee], fallbacks: [c]") +
        model("c", "fallbacks: [a, nobody]"),
    ),
    "catalog.yaml:2:27: models[0].fallbacks[0]: falls back to itself: a → b → c → a\n" +
      "catalog.yaml:3:43: models[1].fallbacks[0]: falls back to itself: b → c → a → b\n" +
      "catalog.yaml:4:27: models[2].fallbacks[0]: falls back to itself: c → a → b → c\n" +
      'catalog.yaml:4:30: models[2].fallbacks[1]: "nobody" is no model and no alias of this catalog',
  );
});

Deno.test("parseCatalog() refuses Heddle's own flags in every spelling", () => {
  for (
    const arg of [
      "--port",
      "--port=1",
      "--tensor-parallel-size",
      "--tensor_parallel_size=2",
      "--Tensor-Parallel-Size",
      "--tensor-par",
      "-tp",
      "--api-key x",
      "--served-model-name",
      "--hos",
    ]
  ) {
    ok(
      withProfile(`        args: ["${arg}"]\n`).includes("is set by Heddle; leave it out"),
      `${arg} was accepted`,
    );
  }
  for (const arg of ["--max-model-len", "8192", "--enforce-eager", "-O3", "--port-of-call"]) {
    equal(withProfile(`        args: ["${arg}"]\n`), "", `${arg} was refused`);
  }
});

Deno.test("parseCatalog() knows the flags of each engine", () => {
  const own = { sglang: "--tp", llamacpp: "-m", sim: "--port" };
  for (const [engine, flag] of Object.entries(own)) {
    ok(withProfile(`        engine: ${engine}\n        args: [${flag}]\n`).includes(flag));
  }
});

Deno.test("parseCatalog() takes numbers for args and env, as people write them", () => {
  const parsed = parseCatalog(
    `${head}    profiles:\n      - name: p\n        args: [--max-model-len, 8192]\n        env: {OMP_NUM_THREADS: 4}\n`,
    "c",
  );
  ok(parsed.kind === "ok");
  deepEqual(parsed.value.models[0]?.profiles[0]?.args, ["--max-model-len", "8192"]);
  deepEqual(parsed.value.models[0]?.profiles[0]?.env, { OMP_NUM_THREADS: "4" });
});

Deno.test("parseCatalog() refuses env that can break a rule unless the profile says unsafe_env", () => {
  const env = (name: string, rest = "") => withProfile(`        env: {${name}: x}\n${rest}`);
  const unsafe = "        unsafe_env: true\n";
  for (const name of ["NCCL_IB_HCA", "CUDA_VISIBLE_DEVICES", "MASTER_ADDR", "UCX_NET_DEVICES"]) {
    ok(env(name).includes("unsafe_env: true"), name);
    equal(env(name, unsafe), "", name);
  }
  for (const name of ["VLLM_API_KEY", "HF_TOKEN", "LLAMA_ARG_PORT"]) {
    ok(env(name, unsafe).includes("is set by Heddle"), name);
  }
  equal(env("NCCL_DEBUG"), "");
  equal(env("VLLM_LOGGING_LEVEL"), "");
});

Deno.test("parseCatalog() refuses what would not fit on the wire", () => {
  ok(
    withProfile("        startup_timeout: 100d\n").includes(
      "models[0].profiles[0].startup_timeout",
    ),
  );
  ok(withProfile("        memory: 99999999TiB\n").includes("models[0].profiles[0].memory"));
  ok(withProfile("        startup_timeout: soon\n").includes("want a duration"));
});

Deno.test("parseCatalog() takes thresholds of liveness, and refuses those that cannot work", () => {
  const said = (line: string) => withProfile(`        liveness: { ${line} }\n`);
  equal(said("token_timeout: 10s, hung_after: 5m"), "");
  ok(said("hung_after: 5s").includes("profiles[0].liveness.hung_after: want 30s to 24h"));
  ok(
    said("hung_after: 12m").includes("profiles[0].liveness.fail_after: want more than hung_after"),
  );
  ok(said("token_timeout: 2h").includes("profiles[0].liveness.token_timeout: want 1s to 1h"));
});

Deno.test("catalogSchema becomes a JSON Schema in which defaulted keys are optional", () => {
  const schema = JSON.stringify(z.toJSONSchema(catalogSchema, { io: "input" }));
  ok(schema.includes('"required":["name","source","profiles"]'));
});

Deno.test("findModel() finds by name and by alias", () => {
  const parsed = parseCatalog(
    "models: [{name: a, aliases: [b], source: s, profiles: [{name: p}]}]",
    "c",
  );
  ok(parsed.kind === "ok");
  equal(findModel(parsed.value, "b")?.name, "a");
  equal(findModel(parsed.value, "c"), undefined);
});
