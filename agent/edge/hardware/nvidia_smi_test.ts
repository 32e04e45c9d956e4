import { deepEqual, equal, ok, rejects } from "node:assert/strict";
import { NvidiaSmi } from "./nvidia_smi.ts";

/** Long for a machine under load: what is meant to answer answers within it. */
const PATIENT_MS = 20_000;

/** Short: what is meant to hang is given up after it. */
const IMPATIENT_MS = 200;

async function withScript(body: string, use: (tool: NvidiaSmi) => Promise<void>): Promise<void> {
  const folder = await Deno.makeTempDir();
  try {
    const path = `${folder}/nvidia-smi`;
    await Deno.writeTextFile(path, `#!/bin/sh\n${body}\n`, { mode: 0o755 });
    await use(new NvidiaSmi(path));
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

const never = new AbortController().signal;

Deno.test("run() gives stdout, stderr and the exit code, also of a failure", async () => {
  await withScript('echo "$1 $LC_ALL"; echo oops >&2; exit 15', async (tool) => {
    deepEqual(await tool.run(["-L"], PATIENT_MS, never), {
      kind: "finished",
      code: 15,
      stdout: "-L C\n",
      stderr: "oops\n",
    });
  });
});

Deno.test("run() abandons a call at its deadline, and starts no other while it hangs", async () => {
  // A process that cannot be killed is not at hand; one whose pipe outlives it stands in for it:
  // sleep inherits stdout and keeps the call from ending.
  await withScript("sleep 2 & wait", async (tool) => {
    const hung = await tool.run(["topo", "-m"], IMPATIENT_MS, never);
    deepEqual(hung, { kind: "hung", call: "topo -m", deadlineMs: IMPATIENT_MS });
    const blocked = await tool.run(["-L"], PATIENT_MS, never);
    ok(blocked.kind === "blocked" || blocked.kind === "hung");
    await tool.idle();
  });
});

Deno.test("run() works again after a call that hung has ended", async () => {
  await withScript('if [ "$1" = slow ]; then exec sleep 30; fi; echo fine', async (tool) => {
    equal((await tool.run(["slow"], IMPATIENT_MS, never)).kind, "hung");
    await tool.idle();
    const after = await tool.run(["fast"], PATIENT_MS, never);
    equal(after.kind === "finished" ? after.stdout : after.kind, "fine\n");
  });
});

Deno.test("run() rejects and kills the call when its signal aborts", async () => {
  await withScript("exec sleep 30", async (tool) => {
    const controller = new AbortController();
    const running = tool.run(["-L"], PATIENT_MS, controller.signal);
    controller.abort(new Error("the agent stops"));
    await rejects(running, /the agent stops/);
    await tool.idle();
  });
});

Deno.test("run() tells a missing program from one that may not be run", async () => {
  const missing = await new NvidiaSmi("/nowhere/nvidia-smi").run(["-L"], PATIENT_MS, never);
  equal(missing.kind === "not_started" ? missing.why : "", "missing");
  const folder = await Deno.makeTempDir();
  try {
    await Deno.writeTextFile(`${folder}/nvidia-smi`, "#!/bin/sh\n", { mode: 0o644 });
    const denied = await new NvidiaSmi(`${folder}/nvidia-smi`).run(["-L"], PATIENT_MS, never);
    equal(denied.kind === "not_started" ? denied.why : "", "denied");
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("run() keeps a bounded part of a flood, and lets the call end", async () => {
  await withScript("head -c 20000000 /dev/zero", async (tool) => {
    const flood = await tool.run(["-q"], PATIENT_MS, never);
    ok(flood.kind === "finished" && flood.code === 0);
    ok(flood.kind === "finished" && flood.stdout.length < 5_000_000);
  });
});
