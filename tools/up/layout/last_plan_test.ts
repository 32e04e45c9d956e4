import { equal } from "node:assert/strict";
import { join } from "node:path";
import { forgetOtherPlan } from "./last_plan.ts";

const VM = { nodes: [{ name: "vm" }], catalog: { file: "/c.yaml" } };

Deno.test("forgetOtherPlan() keeps what control knows under the same plan, and only then", async () => {
  const state = await Deno.makeTempDir({ prefix: "heddle-plan-" });
  try {
    equal(await forgetOtherPlan(state, VM), false, "nothing there yet");
    await Deno.mkdir(join(state, "control"));
    const memory = join(state, "control/control.db");
    const others = [
      { ...VM, nodes: [{ name: "a" }, { name: "b" }] },
      { ...VM, catalog: { file: "/d.yaml" } },
      { ...VM, catalog: { text: "models: []" } },
      VM,
    ];
    for (const plan of others) {
      await Deno.writeTextFile(memory, "");
      equal(await forgetOtherPlan(state, plan), true, JSON.stringify(plan));
      await Deno.writeTextFile(memory, "");
      equal(await forgetOtherPlan(state, { ...plan, nodes: plan.nodes.toReversed() }), false);
      await Deno.stat(memory);
    }
  } finally {
    await Deno.remove(state, { recursive: true });
  }
});
