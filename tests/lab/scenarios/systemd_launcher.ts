/** Engines under a real systemd: they outlive whatever becomes of the agent, and are ended whole. */
import { deepEqual, equal, match, notEqual, ok } from "node:assert/strict";
import { z } from "zod";
import { bootAlone, ctl, ENGINE_USER, readyPid, replicas, startAlone, STATE } from "../alone.ts";
import type { Lab } from "../lab.ts";
import type { LabNode } from "../node.ts";
import type { Scenario } from "../scenario.ts";
import { SOURCE, SOURCE_ENV, testArguments } from "../source.ts";
import { waitFor } from "../wait_for.ts";

export const systemdLauncher: Scenario = {
  title: "engines as units: they survive the agent, tell how they ended, and leak no secret",
  limitMs: 300_000,
  run,
};

/**
 * The simulated engine as real ones behave: a child that leaves its group, and an end of its own
 * with code 3, for which one asks with SIGUSR1.
 */
const ENGINE = "/opt/lab/engine";
const ENGINE_SCRIPT = `#!/bin/sh
[ "$1" != --version ] || exec ${SOURCE}/bin/heddle-sim "$@"
setsid sleep 3600 &
echo engine up
trap 'kill -KILL $sim; exit 3' USR1
trap 'kill -TERM $sim; wait $sim; exit 0' TERM
${SOURCE}/bin/heddle-sim "$@" &
sim=$!
while kill -0 $sim 2>/dev/null; do wait $sim; done
exit 1
`;

const CATALOG = {
  models: [{
    name: "demo",
    source: "demo",
    scaling: { min: 1, max: 1 },
    profiles: [{ name: "sim", engine: "sim", env: { LAB_TOKEN: "very-secret-token" } }],
  }],
};

async function run(lab: Lab): Promise<void> {
  const node = await lab.step("a node boots", () => bootAlone(lab));
  await lab.step("the launcher keeps the contract that all launchers are held to", async () => {
    const { code, stdout, stderr } = await node.exec(
      testArguments("agent/edge/launcher/systemd_test.ts"),
      { env: { ...SOURCE_ENV, HEDDLE_TEST_ENGINE_USER: ENGINE_USER }, limitMs: 120_000 },
    );
    equal(code, 0, `${stdout}\n${stderr}`);
  });
  const pid = await lab.step("an agent starts an engine, which becomes ready", async () => {
    await node.write(ENGINE, ENGINE_SCRIPT, 0o755);
    await startAlone(node, { catalog: CATALOG, engine: ENGINE });
    return await readyPid(node);
  });
  await lab.step("the engine is a unit of its own, as an unprivileged user", () => own(node, pid));
  await lab.step("nobody can read its key or its token", () => keepsSecrets(node, pid));
  await survives(lab, node, pid);
  await lab.step(
    "its log is bounded while the agent is away, and the engine notices nothing",
    () => keepsLogs(node, pid),
  );
  await lab.step("systemd understood every line of the units that it read again", async () => {
    const odd = /unknown|invalid|ignoring|failed to parse/i;
    const said = (await node.journal()).split("\n").filter((line) =>
      / systemd\[1\]: .*heddle-engine-demo/.test(line) && odd.test(line)
    );
    deepEqual(said, []);
  });
  await lab.step("control stops an engine through the agent, and starts another", async () => {
    await ctl(node, "drain", "gpu-1", "--yes");
    await waitFor("the unit is gone", async () => await units(node) === "", 60_000);
    equal(await node.sh(`ps -u ${ENGINE_USER} -o pid= || true`), "", "its children too");
    await ctl(node, "uncordon", "gpu-1");
    notEqual(await readyPid(node), pid);
  });
  await recovers(lab, node);
  await lab.step("what it says can be read from control", async () => {
    await readyPid(node);
    const [replica] = await replicas(node);
    match(await ctl(node, "logs", replica?.replica_id ?? ""), /engine up/);
  });
  await lab.step("the agent stops its engines, and nothing of them is left", async () => {
    await node.run(["systemctl", "stop", "heddle-agent"]);
    const stop = [`${SOURCE}/bin/heddle-agent`, "--stop-engines", "yes"];
    match(await node.run(stop, { env: SOURCE_ENV }), /Stopped 1 engine/);
    equal(await units(node), "");
    equal(await node.sh(`ps -u ${ENGINE_USER} -o pid= || true`), "");
  });
}

async function own(node: LabNode, pid: number): Promise<void> {
  match(await units(node), /^heddle-engine-[\w-]+\.service$/);
  equal(await node.sh(`ps -o user= -p ${pid}`), ENGINE_USER);
  match(
    await node.sh(`cat /proc/${pid}/cgroup`),
    /\/heddle\.slice\/heddle-engines\.slice\/heddle-engine-/,
  );
  equal(await node.sh(`ps -o ppid= -p ${pid}`), "1");
}

/** Everywhere that anyone may look. */
const PUBLIC = `
unit=$1 pid=$2 state=$3
systemctl show "$unit" || true
systemctl cat "$unit" || true
systemctl status --no-pager -l "$unit" || true
cat "/run/systemd/transient/$unit" || true
cat "/proc/$pid/cmdline" "/proc/$pid/environ" || true
for each in /proc/[0-9]*; do cat "$each/cmdline" "$each/environ" || true; done
grep -r . "$state" /etc/heddle /run/heddle || true
journalctl --no-pager || true
ls -R "$state" /var/lib/heddle || true`;

async function keepsSecrets(node: LabNode, pid: number): Promise<void> {
  const unit = await units(node);
  const state = await node.sh(`cat ${STATE}/shards/s-*/state.json`);
  const { api_key: key } = z.object({ api_key: z.string() }).parse(JSON.parse(state));
  match(key, /^sk-heddle-/);
  const look = (user: string) =>
    node.exec(["/bin/sh", "-c", PUBLIC, "sh", unit, String(pid), STATE], { user });
  for (const user of ["nobody", ENGINE_USER]) {
    const { stdout, stderr } = await look(user);
    ok(stdout.includes(unit), "it did look");
    if (user === "nobody") ok(/environ: Permission denied/.test(stderr), "and was refused");
    for (const secret of [key, "very-secret-token"]) {
      // The engine itself has its key in its environment; its own user may see that.
      const found = user === "nobody" ? `${stdout}${stderr}` : "";
      ok(!found.includes(secret), `${user} finds ${secret}`);
    }
  }
  // Who may look does find it: the search is able to.
  const { stdout } = await look("root");
  ok(stdout.includes(key) && stdout.includes("very-secret-token"));
}

async function survives(lab: Lab, node: LabNode, pid: number): Promise<void> {
  const ways: readonly (readonly [name: string, script: string])[] = [
    ["a restart of the agent", "systemctl restart heddle-agent"],
    ["SIGKILL of the agent", "systemctl kill --signal=SIGKILL heddle-agent"],
    ["daemon-reload", "systemctl daemon-reload"],
    ["daemon-reexec", "systemctl daemon-reexec"],
    [
      "all of it at once",
      "systemctl stop heddle-agent; systemctl daemon-reload; systemctl start heddle-agent",
    ],
  ];
  for (const [name, script] of ways) {
    await lab.step(`the engine goes on through ${name}`, async () => {
      const before = await units(node);
      await node.sh(script);
      await adopted(node);
      equal(await readyPid(node), pid);
      equal(await units(node), before);
    });
  }
}

async function keepsLogs(node: LabNode, pid: number): Promise<void> {
  const log = (await node.sh(`echo ${STATE}/shards/s-*/run-*/log`)).trim();
  await node.run(["systemctl", "stop", "heddle-agent"]);
  // What an engine would have written in a night.
  await node.run(["truncate", "--size=200M", log]);
  await waitFor("the log is cut", async () => Number(await node.sh(`stat -c %s ${log}`)) < 2 ** 20);
  equal((await node.sh(`stat -c '%s %a %U' ${log}.old`)).trim(), `${4 * 2 ** 20} 600 root`);
  equal(await node.sh(`ps -o pid= -p ${pid} | tr -d ' '`), String(pid));
  await node.run(["systemctl", "start", "heddle-agent"]);
  await adopted(node);
  equal(await readyPid(node), pid);
}

async function recovers(lab: Lab, node: LabNode): Promise<void> {
  const ends: readonly (readonly [name: string, signal: string, exit: unknown])[] = [
    ["an exit code", "SIGUSR1", { code: 3, signal: "", outOfMemory: false }],
    ["a signal", "SIGKILL", { code: 137, signal: "SIGKILL", outOfMemory: false }],
  ];
  for (const [name, signal, exit] of ends) {
    await lab.step(`${name} is known though the agent was down, and nothing is left`, async () => {
      await readyPid(node);
      const unit = await units(node);
      const shard = (await replicas(node))[0]?.shards[0]?.shard_id ?? "";
      await node.run(["systemctl", "stop", "heddle-agent"]);
      await node.run(["systemctl", "kill", "--kill-whom=main", `--signal=${signal}`, unit]);
      await waitFor("the unit is gone", async () => await units(node) === "");
      equal(await node.sh(`ps -u ${ENGINE_USER} -o pid= || true`), "", "its children too");
      await node.run(["systemctl", "start", "heddle-agent"]);
      const failure = await waitFor("the failure is told", () => failureOf(node, shard));
      deepEqual(failure.exit, exit);
      match(failure.message, signal === "SIGKILL" ? /was ended by SIGKILL/ : /exited with code 3/);
    });
  }
}

const failedSchema = z.object({
  state: z.object({
    failure: z.object({
      message: z.string(),
      exit: z.object({
        code: z.number().optional(),
        signal: z.string(),
        outOfMemory: z.boolean(),
      }),
    }),
  }),
});

/** How the agent says that a shard failed; undefined while it does not. */
async function failureOf(node: LabNode, shard: string) {
  const text = await node.read(`${STATE}/shards/s-${encodeURIComponent(shard)}/state.json`);
  return failedSchema.safeParse(JSON.parse(text)).data?.state.failure;
}

/** Names of the engines' units, a line each. */
async function units(node: LabNode): Promise<string> {
  const list = "systemctl list-units --all --plain --no-legend 'heddle-engine-*'";
  return await node.sh(`${list} | cut -d' ' -f1`);
}

function adopted(node: LabNode): Promise<boolean> {
  return waitFor("the agent has taken over", async () => {
    const script = "printf 'GET /ready HTTP/1.0\\r\\n\\r\\n' >&3; head -1 <&3";
    const { stdout } = await node.exec([
      "bash",
      "-c",
      `exec 3<>/dev/tcp/127.0.0.1/9092 && ${script}`,
    ]);
    return / 200 /.test(stdout);
  });
}
