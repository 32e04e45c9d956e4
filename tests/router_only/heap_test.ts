import { equal, ok } from "node:assert/strict";
import { startRouter } from "./processes.ts";

const ENDPOINTS = [{ name: "box", url: "http://127.0.0.1:1", models: [{ name: "demo" }] }];

Deno.test("a router gives a snapshot of its heap where that is allowed, and not elsewhere", async () => {
  const state = await Deno.makeTempDir();
  try {
    await using router = await startRouter(state, {
      endpoints: ENDPOINTS,
      admin: { heap_snapshots: true },
    });
    const snapshot = await (await fetch(`${router.admin}/debug/heap`)).json();
    ok(snapshot.snapshot.node_count > 1_000);
    await using closed = await startRouter(state, { endpoints: ENDPOINTS });
    const response = await fetch(`${closed.admin}/debug/heap`);
    await response.body?.cancel();
    equal(response.status, 404);
  } finally {
    await Deno.remove(state, { recursive: true });
  }
});
