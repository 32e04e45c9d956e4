/** Who makes the folder that weights are fetched to: an agent may not, and is told of it at once. */
import { deepEqual, equal, ok } from "node:assert/strict";
import { join } from "node:path";
import { parse } from "yaml";
import { z } from "zod";
import { configSchema } from "../../agent/config.ts";
import { ModelWatch } from "../../agent/discovery/model_watch.ts";
import { ROOT } from "../../tools/repository.ts";
import { layOut } from "../../tools/up/layout/layout.ts";
import { layPorts } from "../../tools/up/layout/ports.ts";

const LOOK_MS_MAX = 10_000;

Deno.test("`up` makes every agent's folder of models: its first look finds it", async () => {
  const state = await Deno.makeTempDir();
  try {
    const node = { engines: [], described: undefined, modelDirs: [] };
    const { agents } = await layOut({
      bin: join(ROOT, "bin"),
      state,
      plan: {
        nodes: [{ ...node, name: "n1" }, { ...node, name: "n2" }],
        catalog: { text: "models: []\n" },
      },
      ports: layPorts(2, undefined),
      logFormat: "text",
    });
    equal(agents.length, 2);
    for (const name of ["n1", "n2"]) {
      const text = await Deno.readTextFile(join(state, "agents", name, "agent.yaml"));
      const { model_dirs: folders } = configSchema.parse(parse(text));
      const watch = new ModelWatch(folders, () => 0);
      await watch.refresh(LOOK_MS_MAX, new AbortController().signal);
      deepEqual(watch.problems(), []);
      const [first] = watch.directories();
      equal(first?.path, join(state, "agents", name, "models"));
      ok((first?.freeBytes ?? 0) > 0);
    }
  } finally {
    await Deno.remove(state, { recursive: true });
  }
});

const tasksSchema = z.array(z.looseObject({
  "ansible.builtin.file": z.looseObject({ path: z.string(), state: z.string() }).optional(),
  "ansible.builtin.include_tasks": z.string().optional(),
}));

Deno.test("Ansible makes the folder of models before it starts the agent", async () => {
  const read = async (path: string): Promise<unknown> =>
    parse(await Deno.readTextFile(join(ROOT, "ansible", path)));
  const { heddle_model_dirs: folders } = z.looseObject({ heddle_model_dirs: z.array(z.string()) })
    .parse(await read("group_vars/all.yml"));
  const made = tasksSchema.parse(await read("roles/agent/tasks/folders.yml"))
    .map((task) => task["ansible.builtin.file"])
    .filter((file) => file?.state === "directory")
    .map((file) => file?.path);
  for (const path of [...folders, `${folders[0]}/heddle`]) ok(made.includes(path), path);
  const order = tasksSchema.parse(await read("roles/agent/tasks/main.yml"))
    .map((task) => task["ansible.builtin.include_tasks"]);
  ok(order.includes("folders.yml"));
  ok(order.indexOf("folders.yml") < order.indexOf("service.yml"));
});
