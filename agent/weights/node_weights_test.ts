/** Real runs of the real program, against a hub that speaks HTTP. */
import { deepEqual, equal, match, ok } from "node:assert/strict";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { FetchReport } from "../core/weights/documents.ts";
import { COMMIT, type FakeHub, fakeHub, someBytes } from "../edge/fetch/hub_fake.ts";
import { ProcessLauncher } from "../edge/launcher/process.ts";
import { eventually } from "../eventually_fake.ts";
import { ProgramRuns } from "../programs/program_runs.ts";
import { FETCH } from "./fetch_language.ts";
import { NodeWeights } from "./node_weights.ts";

const SHIM = fileURLToPath(new URL("../../bin/heddle-shim", import.meta.url));
const PROGRAM = fileURLToPath(new URL("../../bin/heddle-fetch", import.meta.url));
const MODEL = someBytes(3_000_000, 9);
const FILES = {
  "config.json": new TextEncoder().encode(JSON.stringify({
    architectures: ["LlamaForCausalLM"],
    num_hidden_layers: 32,
    num_attention_heads: 32,
    num_key_value_heads: 8,
    hidden_size: 4_096,
    max_position_embeddings: 8_192,
    torch_dtype: "bfloat16",
  })),
  "model.safetensors": MODEL,
};
const WANT = { source: "hf://org/name", include: [], exclude: [], version: "" };
const never = new AbortController().signal;

interface Node extends AsyncDisposable {
  readonly hub: FakeHub;
  readonly into: string;
  /** An agent of this node; each has listened until `close`. */
  agent(settings?: Record<string, unknown>): NodeWeights;
}

async function node(): Promise<Node> {
  const hub = await fakeHub(FILES);
  const root = await Deno.makeTempDir();
  const into = join(root, "models", "heddle");
  const folder = join(root, "state", "fetches");
  const launchers: ProcessLauncher[] = [];
  const agents: NodeWeights[] = [];
  return {
    hub,
    into,
    agent(settings = {}) {
      const launcher = new ProcessLauncher({ stateDirectory: folder, shim: SHIM });
      launchers.push(launcher);
      const runs = new ProgramRuns({
        language: FETCH,
        launcher,
        folder,
        program: PROGRAM,
        environmentOf: () => ({
          PATH: "/usr/bin:/bin",
          HEDDLE_DENO: Deno.execPath(),
          ...inherited("HOME"),
          ...inherited("DENO_DIR"),
          HEDDLE_FETCH_INTO: into,
        }),
        settingsOf: () => ({}),
        makeHandle: (name) =>
          `${name.replaceAll(/[^a-z0-9]+/g, "-")}-${crypto.randomUUID().slice(0, 8)}`,
      });
      const weights = new NodeWeights({
        runs,
        into,
        settings: { hub: hub.url, retry_ms: 5, tries: 3, ...settings },
        now: Date.now,
        onChange: () => {},
      });
      agents.push(weights);
      return weights;
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(launchers.map((launcher) => launcher.childrenEnded()));
      for (const agent of agents) agent.close();
      await hub[Symbol.asyncDispose]();
      await Deno.remove(root, { recursive: true });
    },
  };
}

function inherited(name: string): Record<string, string> {
  const value = Deno.env.get(name);
  return value === undefined ? {} : { [name]: value };
}

Deno.test("one fetch serves all who ask, tells how far it is, and is not repeated", async () => {
  await using here = await node();
  const weights = here.agent({ bytes_per_second: 1_000_000 });
  const told: FetchReport[] = [];
  const both = [
    weights.ensure(WANT, (report) => told.push(report), never),
    weights.ensure(WANT, () => {}, never),
  ];
  const [fetching] = await weights.list();
  equal(fetching?.state, "fetching");
  const [first, second] = await Promise.all(both);
  ok(first?.kind === "ready", JSON.stringify(first));
  deepEqual(second, first);
  deepEqual(await Deno.readFile(join(first.path, "model.safetensors")), MODEL);
  ok(
    told.some((report) => report.kind === "progress" && report.done_bytes > 0),
    "progress is told",
  );
  const listed = await weights.list();
  equal(listed.length, 1);
  equal(listed[0]?.want.version, COMMIT);
  equal(listed[0]?.path, first.path);
  const asked = here.hub.asked.length;
  deepEqual(await weights.ensure(WANT, () => {}, never), first);
  equal(here.hub.asked.length, asked);
});

Deno.test("a fetch outlives its agent, and the next one goes on waiting for it", async () => {
  await using here = await node();
  const before = here.agent({ bytes_per_second: 1_500_000 });
  await before.prefetch(WANT);
  await eventually("bytes are asked for", () => here.hub.asked.some(({ storage }) => storage));
  before.close();
  const after = here.agent();
  await after.adopt();
  const [fetching] = await after.list();
  equal(fetching?.state, "fetching");
  const ready = await after.ensure(WANT, () => {}, never);
  equal(ready.kind, "ready");
  equal(here.hub.asked.filter(({ path }) => path.includes("/tree/")).length, 1, "one run did it");
});

Deno.test("a failure is told with its words, and whether trying again can help", async () => {
  await using here = await node();
  here.hub.token = "hf_x";
  const weights = here.agent();
  const refused = await weights.ensure(WANT, () => {}, never);
  ok(refused.kind === "failed");
  equal(refused.reason, "unauthorized");
  equal(refused.permanent, true);
  match(refused.message, /token_file/);
  const [failed] = await weights.list();
  equal(failed?.state, "failed");
  equal(failed?.reason, "unauthorized");
});

Deno.test("remove() takes away what was fetched, and nothing else", async () => {
  await using here = await node();
  const weights = here.agent();
  const ready = await weights.ensure(WANT, () => {}, never);
  ok(ready.kind === "ready");
  const folder = ready.path.slice(here.into.length + 1);
  const used = await weights.remove(folder, [WANT]);
  ok(used.kind === "failed" && used.reason === "in_use");
  // What a person put there, under a name like ours, and a link out of it.
  const mine = join(here.into, "..", "precious");
  await Deno.mkdir(mine);
  await Deno.writeTextFile(join(mine, "weeks-of-work"), "x");
  const link = "a-00000000000000@abc";
  await Deno.symlink(mine, join(here.into, link));
  const plain = "b-00000000000000@abc";
  await Deno.mkdir(join(here.into, plain));
  await Deno.symlink(mine, join(ready.path, "inner"));
  for (const name of ["../precious", "precious", link, plain, `${folder}/../../precious`]) {
    const refused = await weights.remove(name, []);
    ok(refused.kind === "failed" && refused.reason === "not_ours", `${name}: ${refused.kind}`);
  }
  const removed = await weights.remove(folder, []);
  ok(removed.kind === "removed", JSON.stringify(removed));
  ok(removed.freed_bytes >= MODEL.length);
  deepEqual(await weights.list(), []);
  equal(await Deno.readTextFile(join(mine, "weeks-of-work")), "x");
});

Deno.test("inspect() reads a model at its source and fetches none of its weights", async () => {
  await using here = await node();
  const read = await here.agent().inspect(WANT);
  ok(read.kind === "inspected", JSON.stringify(read));
  equal(read.version, COMMIT);
  equal(read.weight_bytes, MODEL.length);
  equal(read.facts.kvBytesPerToken, 2 * 32 * 8 * 128 * 2);
  equal(here.hub.asked.some(({ storage }) => storage), false);
});
