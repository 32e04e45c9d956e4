/** Control's store is copied while it runs; the machine is lost, installed anew, and given it back. */
import { deepEqual, equal, match, ok } from "node:assert/strict";
import { dirname, join } from "node:path";
import { type Fleet, fleetOf, GIANT, prepareFleet } from "../fleet.ts";
import type { Lab } from "../lab.ts";
import type { Scenario } from "../scenario.ts";
import { Traffic } from "../traffic.ts";
import { waitFor } from "../wait_for.ts";

export const backup: Scenario = {
  title: "control is backed up, its machine is lost and made anew: keys and decisions are back",
  limitMs: 1_800_000,
  prepare: prepareFleet,
  run,
};

const CONTROL = "control-1";
const HEDDLE = "/usr/local/bin/heddle";
/** All that the playbook and control have put on the machine. */
const EVERYTHING =
  "/etc/heddle /opt/heddle /var/lib/heddle /var/cache/heddle /usr/local/bin/heddle";
const STATE = "/var/lib/heddle/control";

async function run(lab: Lab): Promise<void> {
  const folder = join(lab.folder, "backups");
  const values = { heddle_backup_folder: folder, heddle_router_key_policy: "control" };
  const fleet = await lab.step("a fleet is onboarded, with a key and decisions", async () => {
    const fleet = await fleetOf(lab, { catalog: GIANT, values });
    await fleet.play("site.yml");
    await fleet.heddle("orgs", "create", "acme");
    await fleet.heddle("projects", "create", "acme/chat");
    await fleet.heddle("cordon", "gpu-b-1", "--reason", "fan");
    await fleet.heddle("ca", "strike", "agent/gpu-gone", "--yes", "--reason", "sold");
    return fleet;
  });
  const first = await fleet.ready("giant");
  const made = await fleet.heddle("keys", "create", "ci", "--project", "acme/chat");
  const key = /sk-heddle-\S+/.exec(made)?.[0] ?? "";
  fleet.useKey(key);
  await lab.step("the key is served", () => answers(fleet));
  const copy = await lab.step("the playbook copies what cannot be rebuilt", async () => {
    const before = await Array.fromAsync(Deno.readDir(folder)).catch(() => []);
    equal(before.length, 0);
    match(await fleet.play("backup.yml"), /msg: \S+\/backups\/control-1\/\d{8}T\d{6}Z/);
    const [at] = await Array.fromAsync(Deno.readDir(join(folder, CONTROL)));
    const copy = join(folder, CONTROL, at?.name ?? "");
    const files = (await Array.fromAsync(Deno.readDir(copy))).map(({ name }) => name).sort();
    deepEqual(files, ["catalog.yaml", "control.db", "control.yaml", "operators.tokens"]);
    for (const place of [copy, join(folder, CONTROL)]) await isPrivate(place);
    equal(await fleet.node(CONTROL).sh(`ls -A ${STATE} | grep -c backup || true`), "0");
    return join(copy, "control.db");
  });
  await lab.step("and again, beside the first", async () => {
    await fleet.play("backup.yml");
    equal((await Array.fromAsync(Deno.readDir(join(folder, CONTROL)))).length, 2);
  });
  await fleet.heddle("uncordon", "gpu-b-1");
  const traffic = await Traffic.start(fleet, "giant", 2);
  await lab.step("the machine loses everything, and is made anew from the copy", async () => {
    const machine = fleet.node(CONTROL);
    await machine.sh(`systemctl stop heddle-control && rm -rf ${EVERYTHING}`);
    await machine.sh("rm -f /etc/systemd/system/heddle-* && systemctl daemon-reload");
    await fleet.play("site.yml", "--extra-vars", `heddle_restore=${copy}`);
    await hasAll(fleet);
  });
  await lab.step("or it is given back while control runs", async () => {
    await fleet.heddle("uncordon", "gpu-b-1");
    await fleet.node(CONTROL).copy(dirname(copy), "/root/backup");
    await fleet.node(CONTROL).sh(`${HEDDLE} restore --yes < /root/backup/control.db`);
    await hasAll(fleet);
  });
  await lab.step("or by hand, with control stopped", async () => {
    // As docs/operating/backup.md has it.
    await fleet.node(CONTROL).sh(`
      systemctl stop heddle-control
      mv ${STATE} ${STATE}.before
      install -d -o heddle-control -g heddle-control -m 0700 ${STATE}
      install -o heddle-control -g heddle-control -m 0600 /root/backup/control.db ${STATE}/
      systemctl start heddle-control
      ${HEDDLE} status`);
    await hasAll(fleet);
  });
  await lab.step("no request failed, and engines have the pids they had", async () => {
    await traffic.stop();
    lab.say(`         ${traffic.served} requests, ${traffic.failures.length} failed`);
    deepEqual(traffic.failures, []);
    deepEqual(await fleet.ready("giant"), first);
  });
}

/** Nobody but its owner may look into it. */
async function isPrivate(folder: string): Promise<void> {
  equal(((await Deno.stat(folder)).mode ?? 0) & 0o777, 0o700, folder);
}

async function answers(fleet: Fleet): Promise<void> {
  await waitFor("the key is known", async () => {
    return (await fleet.ask("giant", "hello")).code === 0;
  }, 60_000);
}

/** The key, the cordon and the strike of before are there, and every node. */
async function hasAll(fleet: Fleet): Promise<void> {
  const nodes = await waitFor("every node has registered", async () => {
    const nodes = await fleet.nodes().catch(() => []);
    return nodes.length === 3 && nodes.every(({ state }) => state !== "unreachable") && nodes;
  }, 90_000);
  deepEqual(nodes.map(({ state }) => state), ["ready", "ready", "cordoned"]);
  ok((await fleet.heddle("ca", "struck")).includes("agent/gpu-gone"));
  await answers(fleet);
}
