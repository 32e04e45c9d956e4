import { equal } from "node:assert/strict";
import { join } from "node:path";
import { stopEngines } from "./cluster.ts";

Deno.test("stopEngines() is out of reach of an impatient second Ctrl-C", async () => {
  const folder = await Deno.makeTempDir({ prefix: "heddle-cluster-" });
  try {
    const launcher = join(folder, "launcher");
    // A terminal signals its foreground group: only a leader of its own group is spared.
    await Deno.writeTextFile(
      launcher,
      '#!/bin/sh\nread -r _ _ _ _ group _ </proc/$$/stat\n[ "$group" = $$ ] && echo apart\n',
      { mode: 0o700 },
    );
    const spec = { label: "agent", launcher, args: [], env: {}, logFile: "/dev/null" };
    equal(await stopEngines(spec), "apart");
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});
