/** Every program is killed once, without warning, under traffic: none takes anything with it. */
import { deepEqual, equal, match, notEqual, ok } from "node:assert/strict";
import { type Fleet, fleetOf, GIANT, prepareFleet } from "../fleet.ts";
import type { Lab } from "../lab.ts";
import type { Scenario } from "../scenario.ts";
import { Traffic } from "../traffic.ts";
import { waitFor } from "../wait_for.ts";

export const kills: Scenario = {
  title: "control, agents and a router are killed under traffic: each comes back, engines stay",
  limitMs: 1_800_000,
  prepare: prepareFleet,
  run,
};

const CLIENTS = 4;

async function run(lab: Lab): Promise<void> {
  const fleet = await lab.step("a fleet is onboarded", async () => {
    const fleet = await fleetOf(lab, { catalog: GIANT });
    await fleet.play("site.yml");
    return fleet;
  });
  const first = await fleet.ready("giant");
  await lab.step("control is killed: no request fails, and it finds everything again", async () => {
    const failures = await underTraffic(lab, fleet, async () => {
      await kill(fleet, "control-1", "heddle-control.service");
      await settled(fleet);
    });
    deepEqual(failures, []);
    deepEqual(await fleet.ready("giant"), first);
  });
  await lab.step("control is away for a minute: routers serve on", async () => {
    const failures = await underTraffic(lab, fleet, async () => {
      const control = fleet.node("control-1");
      await control.run(["systemctl", "stop", "heddle-control"]);
      await new Promise((later) => setTimeout(later, 60_000));
      await control.run(["systemctl", "start", "heddle-control"]);
      await settled(fleet);
    });
    deepEqual(failures, []);
    deepEqual(await fleet.ready("giant"), first);
  });
  await lab.step("control hangs: systemd ends it, and it comes back", async () => {
    const failures = await underTraffic(lab, fleet, async () => {
      const control = fleet.node("control-1");
      const pid = () => control.sh("systemctl show --property=MainPID --value heddle-control");
      const hung = await pid();
      await control.run(["kill", "-STOP", hung]);
      await waitFor("another process", async () => {
        const now = await pid();
        return now !== hung && now !== "0";
      }, 120_000);
      match(await control.journal("heddle-control"), /[Ww]atchdog timeout/);
      await settled(fleet);
    });
    deepEqual(failures, []);
    deepEqual(await fleet.ready("giant"), first);
  });
  for (const node of Object.keys(first)) {
    await lab.step(`the agent of ${node} is killed: its engine is adopted`, async () => {
      const failures = await underTraffic(lab, fleet, async () => {
        await kill(fleet, node, "heddle-agent.service");
        await waitFor("all nodes are ready", async () => {
          return (await fleet.nodes()).every(({ state }) => state === "ready");
        });
      });
      deepEqual(failures, []);
      deepEqual(await fleet.ready("giant"), first);
    });
  }
  await lab.step(
    "a router is killed: what it had in hand is lost, the other takes the rest",
    async () => {
      const failures = await underTraffic(lab, fleet, async () => {
        await kill(fleet, "router-1", "heddle-router@1.service");
      });
      // One for each client at most: whatever comes after is served.
      ok(failures.length <= CLIENTS, failures.join("\n"));
      deepEqual(await fleet.ready("giant"), first);
    },
  );
}

/** Kills a unit's main process and waits until systemd has another, which runs on. */
async function kill(fleet: Fleet, machine: string, unit: string): Promise<void> {
  const node = fleet.node(machine);
  const pid = () => node.run(["systemctl", "show", "--property=MainPID", "--value", unit]);
  const before = (await pid()).trim();
  notEqual(before, "0");
  await node.run(["systemctl", "kill", "--signal=SIGKILL", "--kill-who=main", unit]);
  await waitFor(`${unit} runs again`, async () => {
    const state = (await node.exec(["systemctl", "is-active", unit])).stdout.trim();
    const now = (await pid()).trim();
    return state === "active" && now !== "0" && now !== before;
  });
  equal((await node.exec(["systemctl", "is-failed", unit])).stdout.trim(), "active");
}

async function settled(fleet: Fleet): Promise<void> {
  await waitFor("control has heard from every node", async () => {
    const asked = await fleet.node("control-1").exec([
      "/usr/local/bin/heddle",
      "version",
      "--json",
    ]);
    return asked.code === 0 && JSON.parse(asked.stdout).settled === true;
  }, 90_000);
}

async function underTraffic(
  lab: Lab,
  fleet: Fleet,
  work: () => Promise<void>,
): Promise<readonly string[]> {
  const traffic = await Traffic.start(fleet, "giant", CLIENTS);
  try {
    await work();
    // Whatever it did to the next request shows only now.
    const served = traffic.served;
    await waitFor("further answers", () => traffic.served >= served + CLIENTS);
  } finally {
    await traffic.stop();
  }
  lab.say(`         ${traffic.served} requests, ${traffic.failures.length} failed`);
  return traffic.failures;
}
