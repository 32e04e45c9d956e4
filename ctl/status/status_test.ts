import { deepEqual, equal, match, rejects } from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import {
  GetCatalogResponseSchema,
  GetVersionResponseSchema,
  ModelViewSchema,
  NodeViewSchema,
  ReplicaViewSchema,
  RouterViewSchema,
} from "@heddle/proto/gen/admin";
import { NodeState, ReplicaState } from "@heddle/proto/gen/types";
import { HeddleError } from "@heddle/proto/error";
import { formatStatus } from "../commands/status.ts";
import { type Fleet, statusOf } from "./fleet_status.ts";
import type { Io } from "../io.ts";
import { show } from "../watch.ts";

const CATALOG = create(GetCatalogResponseSchema, {
  revision: 4n,
  models: 1,
  file: "/etc/heddle/catalog.yaml",
  fileState: "applied",
});

const WELL: Fleet = {
  catalog: CATALOG,
  version: create(GetVersionResponseSchema, { version: "0.1.0", cluster: "lab", settled: true }),
  nodes: [create(NodeViewSchema, {
    name: "gpu-1",
    state: NodeState.READY,
    usedGpus: [0],
    inventory: { gpus: [{ index: 0 }, { index: 1 }] },
  })],
  models: [create(ModelViewSchema, { name: "demo", desiredReplicas: 1, readyReplicas: 1 })],
  replicas: [create(ReplicaViewSchema, { replicaId: "demo-1-1", state: ReplicaState.READY })],
  routers: [create(RouterViewSchema, { name: "r/1", leased: true, current: true, inFlight: 3 })],
  weights: [],
};

Deno.test("status: a fleet that is well fits in nine lines", () => {
  const text = formatStatus(WELL.version, statusOf(WELL));
  equal(
    text,
    `Cluster   lab, control 0.1.0
Nodes     1 ready
GPUs      1 of 2 free
Models    1 of 1 serving
Replicas  1 ready
Routers   1
Requests  3 in flight, 0 waiting

All is well.
`,
  );
});

Deno.test("status: whatever is not well is named, with what to do next", () => {
  const trouble: Fleet = {
    catalog: {
      ...CATALOG,
      fileState: "invalid",
      fileDetail: "catalog.yaml:7:9: models[0].profiles[0].tp: want 1 or more\n",
    },
    version: create(GetVersionResponseSchema, { settled: false, name: "c1" }),
    nodes: [
      create(NodeViewSchema, { name: "a", state: NodeState.LOST }),
      create(NodeViewSchema, {
        name: "b",
        state: NodeState.DRAINED,
        inventory: {
          gpus: [{
            index: 3,
            problems: [{ reason: "gpu_lost", detail: "GPU is lost\nx", remedy: "reset it" }],
          }],
        },
      }),
    ],
    models: [
      create(ModelViewSchema, {
        name: "m",
        desiredReplicas: 2,
        readyReplicas: 1,
        reason: "no room",
      }),
      create(ModelViewSchema, { name: "p", paused: true }),
      create(ModelViewSchema, { name: "asleep" }),
    ],
    replicas: [],
    routers: [],
    weights: [],
  };
  const found = statusOf(trouble);
  deepEqual(
    found.concerns.map(({ subject, next }) => `${subject} → ${next}`),
    [
      "control c1 → wait a minute; heddle nodes shows who is missing",
      "catalog → correct it; check it with: heddle plan /etc/heddle/catalog.yaml",
      "routers → is heddle-router@1 running, and can it reach control? its log says so",
      "model m → heddle explain m",
      "model p → heddle models resume p",
      "node a → repair it, or remove it: heddle nodes forget a",
      "node b → heddle uncordon b",
      "node b GPU 3 → reset it",
    ],
  );
  deepEqual(found.gpus, { all: 1, free: 0, unusable: 1 });
  deepEqual(found.models, { all: 3, serving: 1, asleep: 2 });
  const text = formatStatus(trouble.version, found);
  match(text, /^8 things to look at:$/m);
  match(text, /model m: 1 of 2 replicas ready: no room\n {4}→ heddle explain m$/m);
  match(
    text,
    /catalog: the file is invalid, revision 4 stays: catalog\.yaml:7:9: models\[0\]\.profiles\[0\]\.tp: want/,
  );
  match(text, /gpu_lost: GPU is lost x$/m);
});

Deno.test("status: a catalog file that is not acted on is named, with why, and in one line", () => {
  const concernOf = (fileState: string, fileDetail: string, revision = 4n) =>
    statusOf({ ...WELL, catalog: { ...CATALOG, fileState, fileDetail, revision } }).concerns
      .map(({ what }) => what);
  deepEqual(concernOf("waiting", "it would stop 3 of 4; apply it with: heddle apply"), [
    "the new text of /etc/heddle/catalog.yaml waits, revision 4 stays: " +
    "it would stop 3 of 4; apply it with: heddle apply",
  ]);
  deepEqual(concernOf("unreadable", "No such file", 0n), [
    "control cannot read /etc/heddle/catalog.yaml, no catalog was ever applied: No such file",
  ]);
  deepEqual(concernOf("superseded", "it is older than what is acted on"), []);
  deepEqual(concernOf("invalid", "a:1:1: x\na:2:1: y\na:3:1: z\na:4:1: w\na:5:1: v\n"), [
    "the file is invalid, revision 4 stays: a:1:1: x; a:2:1: y; a:3:1: z; and 2 more: heddle catalog",
  ]);
});

function screen(terminal: boolean): Io & { readonly text: () => string } {
  let text = "";
  return { terminal, color: false, out: (more) => text += more, err: () => {}, text: () => text };
}

Deno.test("--watch draws in place on a terminal, outlives a restart of control, ends with Ctrl-C", async () => {
  const io = screen(true);
  const interrupt = new AbortController();
  await show({ io, signal: interrupt.signal }, { watch: true }, () => {
    interrupt.abort();
    return Promise.reject(new HeddleError("unavailable", "Cannot reach control"));
  });
  equal(io.text(), "\x1b[2J\x1b[HCannot reach control\x1b[K\n\x1b[J");
  const refused = new HeddleError("not_found", "No such model");
  await rejects(
    show(
      { io, signal: new AbortController().signal },
      { watch: true },
      () => Promise.reject(refused),
    ),
    refused,
  );
});

Deno.test("without --watch a list is fetched once, and fails as it does", async () => {
  const io = screen(false);
  const context = { io, signal: new AbortController().signal };
  await show(context, { watch: false }, () => Promise.resolve(({ out }) => out("once\n")));
  equal(io.text(), "once\n");
  const away = new HeddleError("unavailable", "Cannot reach control");
  await rejects(show(context, { watch: false }, () => Promise.reject(away)), away);
});
