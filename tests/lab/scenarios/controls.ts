/** Two controls on one PostgreSQL: the one that leads is killed, the other takes over, nothing restarts. */
import { deepEqual, equal, notEqual } from "node:assert/strict";
import { createLeaf, createRoot } from "@heddle/common/pki";
import { PostgresServer } from "../../../control/edge/store/postgres/server_fake.ts";
import { type Fleet, fleetOf, GIANT, prepareFleet } from "../fleet.ts";
import type { Lab } from "../lab.ts";
import type { Scenario } from "../scenario.ts";
import { Traffic } from "../traffic.ts";
import { waitFor } from "../wait_for.ts";

export const controls: Scenario = {
  title: "of two controls on one PostgreSQL the leader is killed: the other leads, engines stay",
  limitMs: 2_400_000,
  prepare: prepareFleet,
  run,
};

const DAY_MS = 86_400_000;
const PASSWORD = "lab";
/** What keeps systemd from starting it again. */
const STAY_AWAY = "/run/systemd/system/heddle-control.service.d/stay-away.conf";
const NAMES = ["control-1", "control-2"] as const;

async function run(lab: Lab): Promise<void> {
  const authority = await createRoot({ cluster: "pg", validMs: DAY_MS, now: Date.now() });
  const pair = await createLeaf(authority, {
    identity: { cluster: "pg", role: "control", name: "postgres" },
    hosts: [lab.address],
    validMs: DAY_MS,
    now: Date.now(),
  });
  await using server = await PostgresServer.start({
    tls: { cert: pair.certificatePem, key: pair.keyPem },
    password: PASSWORD,
    beyond: { address: lab.address, network: "10.93.0.0/24" },
  });
  const fleet = await lab.step("a fleet with two controls is onboarded", async () => {
    const fleet = await fleetOf(lab, {
      catalog: GIANT,
      controls: NAMES,
      files: {
        "/etc/heddle/postgres.password": `${PASSWORD}\n`,
        "/etc/heddle/postgres-ca.pem": authority.certificatePem,
      },
      values: {
        heddle_control_extra: {
          store: {
            postgres: {
              address: `${lab.address}:${server.port}`,
              database: "postgres",
              password_file: "/etc/heddle/postgres.password",
              ca_file: "/etc/heddle/postgres-ca.pem",
            },
          },
        },
      },
    });
    await fleet.play("site.yml");
    return fleet;
  });
  const first = await fleet.ready("giant");
  const before = await leaderOf(fleet);
  await lab.step(
    "the leader is killed and stays away: the other takes over, nothing restarts",
    async () => {
      const traffic = await Traffic.start(fleet, "giant", 2);
      const dead = fleet.node(before.name);
      // A mask in /run would not do: the unit is in /etc, which goes before it.
      await dead.write(STAY_AWAY, "[Service]\nRestart=no\n");
      await dead.run(["systemctl", "daemon-reload"]);
      await dead.run(["systemctl", "kill", "--signal=SIGKILL", "heddle-control"]);
      const after = await waitFor("another leads", async () => {
        const leader = await leaderOf(fleet).catch(() => undefined);
        return leader !== undefined && leader.name !== before.name && leader.settled && leader;
      }, 120_000);
      notEqual(after.term, before.term);
      await waitFor("every node is ready", async () => {
        return (await fleet.nodes()).every(({ state }) => state === "ready");
      }, 60_000);
      await traffic.stop();
      lab.say(`         ${traffic.served} requests, ${traffic.failures.length} failed`);
      deepEqual(traffic.failures, []);
      deepEqual(await fleet.ready("giant"), first);
    },
  );
  await lab.step("it comes back, and stands by", async () => {
    const node = fleet.node(before.name);
    equal((await node.exec(["systemctl", "is-active", "heddle-control"])).stdout.trim(), "failed");
    await node.run(["rm", STAY_AWAY]);
    await node.run(["systemctl", "daemon-reload"]);
    await node.run(["systemctl", "start", "heddle-control"]);
    notEqual((await leaderOf(fleet)).name, before.name);
    deepEqual(await fleet.ready("giant"), first);
  });
  await lab.step("a second run of the playbook changes nothing", async () => {
    deepEqual(await fleet.changesOf("site.yml"), {});
    equal((await fleet.nodes()).length, 3);
  });
}

/** Who leads, as `heddle` on either machine finds it. */
async function leaderOf(fleet: Fleet): Promise<{ name: string; term: number; settled: boolean }> {
  const asked = await fleet.heddle("version", "--json");
  const { name, term, settled, leading } = JSON.parse(asked);
  if (leading !== true) throw new Error(`${name} does not lead`);
  return { name, term, settled };
}
