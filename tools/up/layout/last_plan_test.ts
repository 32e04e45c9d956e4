import { equal, rejects } from "node:assert/strict";
import { join } from "node:path";
import { forgetOtherPlan } from "./last_plan.ts";

const VM = { nodes: [{ name: "vm" }], catalog: { file: "/c.yaml" } };

Deno.test("forgetOtherPlan() keeps what control knows under the same plan, and only then", async () => {
  const said: string[] = [];
  const forgets = async (plan: Parameters<typeof forgetOtherPlan>[1]) => {
    said.length = 0;
    await forgetOtherPlan(state, plan, (line) => said.push(line));
    return said.length > 0;
  };
  const state = await Deno.makeTempDir({ prefix: "heddle-plan-" });
  try {
    equal(await forgets(VM), false, "nothing there yet");
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
      equal(await forgets(plan), true, JSON.stringify(plan));
      await rejects(Deno.stat(memory));
      await Deno.writeTextFile(memory, "");
      equal(await forgets({ ...plan, nodes: plan.nodes.toReversed() }), false);
      await Deno.stat(memory);
    }
  } finally {
    await Deno.remove(state, { recursive: true });
  }
});
