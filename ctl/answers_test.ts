/** Answers that are no lists, as whole commands give them, against a control that answers. */
import { deepEqual, equal, match } from "node:assert/strict";
import { AdminService } from "@heddle/proto/gen/admin";
import { JoinTokenService } from "@heddle/proto/gen/attach";
import { WeightsService } from "@heddle/proto/gen/weights";
import { withControl } from "./testing/app_fake.ts";

const GIB = 1n << 30n;

const INSPECTED = {
  node: "n1",
  facts: {
    want: { source: "hf://acme/m", version: "0123456789abcdef" },
    totalBytes: 16n * GIB,
    weightBytes: 15n * GIB,
    files: 4,
    note: "no generation_config.json",
    model: {
      architecture: "LlamaForCausalLM",
      layers: 32,
      heads: 32,
      kvHeads: 8,
      contextMax: 131_072n,
      kvWindow: 1_024n,
      dtype: "bfloat16",
      quantization: "fp8",
    },
  },
  sizes: [
    { tp: 1, memoryBytes: 17n * GIB, kvBytesPerToken: 131_072n },
    { tp: 3, problem: "32 heads do not divide by 3" },
  ],
  classes: [{
    gpuClass: "h100-80g",
    gpusMax: 8,
    contexts: [{ tp: 1, tokens: 131_072n }, { tp: 2, tokens: 0n }, { tp: 4 }],
  }],
  catalogEntry: "- name: m\n  source: hf://acme/m\n",
};

Deno.test("models inspect: what a model is and where it fits; a person hears what is waited for", async () => {
  await withControl(
    (router) => router.service(WeightsService, { inspectSource: () => INSPECTED }),
    async (run) => {
      const args = ["models", "inspect", "hf://acme/m"];
      const { out, err } = await run(args, { terminal: true });
      equal(err, "A node reads a few files of hf://acme/m; that may take minutes\n");
      equal(
        out,
        `source       hf://acme/m
version      0123456789abcdef
to fetch     16.0 GiB in 4 files
weights      15.0 GiB
model        LlamaForCausalLM
shape        32 layers, 32 heads, 8 KV heads
dtype        bfloat16
quantised    fp8
context      131072 tokens at most
windows      some layers keep the last 1024 tokens only
note         no generation_config.json
read by      n1

Memory of each GPU, beside the cache:
  tp 1   17.0 GiB, and 128 KiB for each token of context
  tp 3   32 heads do not divide by 3

Longest context on the fleet's GPUs, in tokens:
  h100-80g (up to 8 on a node)   tp 1: 131072, tp 2: does not fit, tp 4: unknown

For the catalog:

- name: m
  source: hf://acme/m
`,
      );
      const piped = await run(args);
      deepEqual([piped.out, piped.err], [out, ""]);
      const named = await run([...args, "--node", "n1"], { terminal: true });
      match(named.err, /^n1 reads a few files of hf:/);
      const record = JSON.parse((await run([...args, "--json"])).out);
      deepEqual(
        [
          record.node,
          record.facts.weight_bytes,
          record.sizes[1].problem,
          record.classes[0].contexts[2],
        ],
        ["n1", Number(15n * GIB), "32 heads do not divide by 3", { tp: 4, tokens: null }],
      );
      match(
        (await run([...args, "-o", "yaml"])).out,
        /^facts:\n {2}want:\n {4}source: hf:\/\/acme\/m\n/,
      );
    },
  );
});

Deno.test("models inspect: what is not known is said to be so", async () => {
  const inspectSource = () => ({ facts: { want: { source: "/w/m" }, files: 1 }, node: "n1" });
  await withControl((router) => router.service(WeightsService, { inspectSource }), async (run) => {
    equal(
      (await run(["models", "inspect", "/w/m"])).out,
      `source       /w/m
version      unknown
to fetch     0 B in 1 file
weights      of unknown size
read by      n1

Memory of each GPU, beside the cache:

No GPU of a known class is in the fleet.

For the catalog:

`,
    );
  });
});

Deno.test("plan: a person hears what is waited for, a pipe gets the plan alone", async () => {
  const planCatalog = () => ({ plan: { revision: 4n, kept: 2 } });
  await withControl((router) => router.service(AdminService, { planCatalog }), async (run) => {
    const args = ["plan", "-"];
    const text = "No change against revision 4\n2 replicas go on as they are\n";
    const wait = "Control looks ahead; on a large fleet that takes up to two minutes\n";
    deepEqual(await run(args, { terminal: true }), {
      out: text,
      err: wait,
      failed: false,
      code: 0,
    });
    deepEqual(await run(args), { out: text, err: "", failed: false, code: 0 });
  });
});

Deno.test("join-tokens create: shown once, with what the box needs, and as JSON", async () => {
  const asked: unknown[] = [];
  const createJoinToken = (
    { deploymentId, validMs }: { readonly deploymentId: string; readonly validMs: bigint },
  ) => {
    asked.push([deploymentId, validMs]);
    return { token: "hjt.abc", tokenId: "00ff", expiresAtMs: 1_800_000_000_000n };
  };
  await withControl(
    (router) => router.service(JoinTokenService, { createJoinToken }),
    async (run) => {
      const args = ["join-tokens", "create", "vast-july"];
      equal(
        (await run(args)).out,
        "Token 00ff of deployment vast-july, until 2027-01-15T08:00:00.000Z, shown this once:\n\n" +
          "  HEDDLE_DEPLOYMENT_ID=vast-july\n  HEDDLE_JOIN_TOKEN=hjt.abc\n\n" +
          "Beside it the engine's box needs HEDDLE_ENGINE_ID and HEDDLE_CONTROL_URL, see " +
          "docs/attach.md\n",
      );
      equal(
        (await run([...args, "--valid", "2h", "-o", "yaml"])).out,
        "token: hjt.abc\ntoken_id: 00ff\ndeployment: vast-july\nuntil: 2027-01-15T08:00:00.000Z\n",
      );
    },
  );
  deepEqual(asked, [["vast-july", 0n], ["vast-july", 7_200_000n]]);
});
