/** From bare machines to a model that is served, by the playbook alone; a second run does nothing. */
import { deepEqual, equal, match, notEqual, ok } from "node:assert/strict";
import { attemptCommand } from "../command.ts";
import { type Fleet, fleetOf, GIANT, prepareFleet } from "../fleet.ts";
import type { Lab } from "../lab.ts";
import type { Scenario } from "../scenario.ts";

export const onboard: Scenario = {
  title: "a fleet of five bare machines is onboarded and serves; a second run changes nothing",
  limitMs: 1_800_000,
  prepare: prepareFleet,
  run,
};

/** systemd's own measure, from 0 (nothing to fear) to 10. */
const EXPOSURE_MAX = 2.5;
/** The first is made; the last is there whatever is asked for. */
const MODEL_DIRS = ["/srv/models/large", "/var/lib/heddle/models"];
const UNITS = [
  ["control-1", "heddle-control.service"],
  ["router-1", "heddle-router@1.service"],
  ["gpu-a-1", "heddle-agent.service"],
] as const;

async function run(lab: Lab): Promise<void> {
  const fleet = await lab.step(
    "five machines boot",
    () =>
      fleetOf(lab, {
        catalog: GIANT,
        values: { heddle_firewall: true, heddle_model_dirs: MODEL_DIRS },
      }),
  );
  if (!lab.quick) {
    await lab.step("a check on bare machines passes and changes nothing", async () => {
      await fleet.play("site.yml", "--check");
      for (const { name } of lab.nodes) equal(await has(fleet, name, "/opt/heddle"), false, name);
    });
  }
  await lab.step("the playbook onboards them", () => fleet.play("site.yml"));
  await lab.step("folders of models are there, for the engines to read", async () => {
    for (const name of ["gpu-a-1", "gpu-a-2", "gpu-b-1"]) {
      const folders = MODEL_DIRS.flatMap((path) => [path, `${path}/heddle`]);
      const seen = await fleet.node(name).run(["stat", "-c", "%U:%G %a", ...folders]);
      deepEqual(seen.trim().split("\n"), [
        ...["root:heddle-engine 2750", "heddle-fetch:heddle-engine 2750"],
        ...["root:heddle-engine 2750", "heddle-fetch:heddle-engine 2750"],
      ], name);
      const look = ["runuser", "-u", "heddle-engine", "--", "ls", ...folders];
      await fleet.node(name).run(look);
    }
  });
  await lab.step("nothing of systemd has failed", async () => {
    for (const node of lab.nodes) {
      equal(await node.sh("systemctl --failed --plain --no-legend"), "", node.name);
    }
  });
  await lab.step("every unit is confined", async () => {
    for (const [name, unit] of UNITS) {
      const command = ["systemd-analyze", "security", "--no-pager", unit];
      const last = (await fleet.node(name).run(command)).trim().split("\n").at(-1) ?? "";
      const exposure = Number(/: ([\d.]+) [A-Z]+/.exec(last)?.[1]);
      lab.say(`         ${unit}: exposure ${exposure}`);
      ok(exposure <= EXPOSURE_MAX, `${unit}: ${last}`);
    }
  });
  await lab.step("control sees the nodes, their GPUs and their fabrics", () => seesNodes(fleet));
  await lab.step("a replica on two nodes of one fabric becomes ready", () => becomesReady(fleet));
  await lab.step("a client gets an answer through each router", () => serves(fleet));
  await lab.step("an engine is reached by the fleet, and by nobody else", () => isClosed(fleet));
  await lab.step("a second run changes nothing", async () => {
    deepEqual(await fleet.changesOf("site.yml"), {});
  });
  if (lab.quick) return;
  await lab.step("and neither does a check", async () => {
    deepEqual(await fleet.changesOf("site.yml", "--check"), {});
  });
}

async function has(fleet: Fleet, node: string, path: string): Promise<boolean> {
  return (await fleet.node(node).exec(["test", "-e", path])).code === 0;
}

async function seesNodes(fleet: Fleet): Promise<void> {
  const nodes = await fleet.nodes();
  deepEqual(nodes.map(({ name, state }) => [name, state]), [
    ["gpu-a-1", "ready"],
    ["gpu-a-2", "ready"],
    ["gpu-b-1", "ready"],
  ]);
  for (const { name, inventory } of nodes) {
    deepEqual(
      inventory?.fabrics.map(({ name, degraded }) => ({ name, degraded })),
      [{ name: name.startsWith("gpu-a") ? "ib-a" : "ib-b", degraded: false }],
      name,
    );
  }
}

async function becomesReady(fleet: Fleet): Promise<void> {
  deepEqual(Object.keys(await fleet.ready("giant")).sort(), ["gpu-a-1", "gpu-a-2"]);
  equal((await fleet.replicas())[0]?.fabric, "ib-a");
}

async function serves(fleet: Fleet): Promise<void> {
  const { code, stdout, stderr } = await fleet.ask("giant", "hello");
  equal(code, 0, stderr);
  match(stdout, /"finish_reason":"(?:stop|length)"/);
  const refused = await fleet.ask("giant", "hello", { key: "sk-heddle-wrong" });
  ok(/"code":"invalid_api_key"|401/.test(refused.stdout), refused.stdout);
}

async function isClosed(fleet: Fleet): Promise<void> {
  const nodes = ["gpu-a-1", "gpu-a-2"].map((name) => fleet.node(name));
  const ports = await Promise.all(nodes.map((node) => node.sh(ENGINE_PORT)));
  const leader = nodes[ports[0] === "" ? 1 : 0];
  const port = ports[0] === "" ? ports[1] : ports[0];
  ok(leader !== undefined && port !== undefined && port !== "", "an engine listens");
  const reach = ["timeout", "3", "bash", "-c", `exec 3<>/dev/tcp/${leader.address}/${port}`];
  const fromRouter = await fleet.node("router-1").exec(reach);
  equal(fromRouter.code, 0, fromRouter.stderr);
  // The lab itself is a machine on the same network, and none of the fleet.
  notEqual((await attemptCommand(reach)).code, 0);
}

/** The first port of the engines' range on which something listens. */
const ENGINE_PORT = String
  .raw`ss -Hltn | sed -n 's/.*:\(2[0-9]\{4\}\) .*/\1/p' | sort -u | head -n 1`;
