/**
 * Releases that do not run, under streaming traffic: where one was tried first it is put back, no
 * other machine is touched, and nobody who asks notices.
 */
import { deepEqual, equal, match, notEqual, ok } from "node:assert/strict";
import { join } from "node:path";
import { type Fleet, fleetOf, GIANT, prepareFleet, releaseOfLab } from "../../fleet.ts";
import type { Lab } from "../../lab.ts";
import { type NextRelease, writeNextRelease } from "../../next_release.ts";
import type { Scenario } from "../../scenario.ts";
import { Traffic } from "../../traffic.ts";
import { waitFor } from "../../wait_for.ts";

export const badRelease: Scenario = {
  title: "a release that does not run is put back where it came first, and nobody notices",
  limitMs: 3_000_000,
  prepare: prepareFleet,
  run,
};

/** Where Ansible has to share two cores a node may be away for longer than the default allows. */
const PATIENT = { lost: "5m" };

const CLIENTS = 4;
const NODES = ["gpu-a-1", "gpu-a-2", "gpu-b-1"];

interface Bad {
  readonly version: string;
  readonly what: string;
  readonly how: Pick<NextRelease, "broken" | "before">;
  /** Where it comes first, and is put back. */
  readonly first: string;
  /** What the play says beside that. */
  readonly words: RegExp;
}

/** In the order in which an upgrade comes to them. */
const BAD: readonly Bad[] = [
  {
    version: "0.1.1",
    what: "a control that ends at once",
    how: {
      broken: { "heddle-control": 'console.error("cannot rule: bad magic"); Deno.exit(7);\n' },
    },
    first: "control-1",
    words: /0\.1\.1 failed there.*bad magic/s,
  },
  {
    version: "0.1.2",
    what: "a router that ends at once",
    how: {
      broken: { "heddle-router": 'console.error("cannot route: bad magic"); Deno.exit(7);\n' },
    },
    first: "router-1",
    words: /0\.1\.2 failed there.*bad magic/s,
  },
  {
    version: "0.1.3",
    what: "an agent that ends at once",
    how: {
      broken: { "heddle-agent": 'console.error("cannot start: bad magic"); Deno.exit(7);\n' },
    },
    first: "gpu-a-1",
    words: /0\.1\.3 failed there.*bad magic/s,
  },
  {
    version: "0.1.4",
    what: "an agent that lives, gets never ready and never registers",
    how: { broken: { "heddle-agent": "setInterval(() => {}, 1e6);\n" } },
    first: "gpu-a-1",
    words: /0\.1\.4 failed there/,
  },
  {
    version: "0.1.5",
    what: "an agent that is well at first, and crashes while the first node is watched",
    how: { before: { "heddle-agent": "setTimeout(() => Deno.exit(9), 20_000);\n" } },
    first: "gpu-a-1",
    words: /0\.1\.5 failed there: it ended by itself within 30 s/,
  },
];

/** What tells that a machine was not touched: what it runs, since when, and from which files. */
const UNTOUCHED = `readlink /opt/heddle/current
systemctl show --property=InvocationID --value 'heddle-agent.service' 'heddle-router@*.service'
stat --format='%n %Y %i' /etc/systemd/system/heddle-* /etc/heddle/*.yaml`;

async function run(lab: Lab): Promise<void> {
  const fleet = await lab.step("a fleet is onboarded", async () => {
    const values = { heddle_upgrade_soak_s: 30, heddle_control_extra: { timing: PATIENT } };
    const fleet = await fleetOf(lab, { catalog: GIANT, values });
    await fleet.play("site.yml");
    return fleet;
  });
  const engines = await fleet.ready("giant");
  const traffic = await Traffic.start(fleet, "giant", CLIENTS);
  try {
    for (const bad of BAD) {
      await lab.step(`${bad.what} is put back, and nobody notices`, async () => {
        const served = traffic.served;
        await expectPutBack(lab, fleet, bad);
        deepEqual(await fleet.ready("giant"), engines);
        deepEqual(traffic.failures, []);
        ok(traffic.served > served);
        lab.say(`         ${traffic.served - served} requests, ${traffic.failures.length} failed`);
      });
    }
  } finally {
    await traffic.stop();
  }
  await lab.step("every answer that was begun has come to its end", () => {
    lab.say(`         ${traffic.served} requests in all, ${traffic.failures.length} failed`);
    deepEqual(traffic.failures, []);
    return Promise.resolve();
  });
}

async function expectPutBack(lab: Lab, fleet: Fleet, bad: Bad): Promise<void> {
  const { version, how, first, words } = bad;
  const to = join(lab.folder, version);
  await writeNextRelease({ from: releaseOfLab(), to, version, ...how });
  const others = NODES.filter((name) => name !== first);
  const before = await stateOf(fleet, others);
  const previous = await currentOf(fleet, first);
  const dists = JSON.stringify({ heddle_dists: { x86_64: to } });
  const { code, stdout } = await fleet.attempt("upgrade.yml", "--extra-vars", dists);
  notEqual(code, 0);
  match(stdout, new RegExp(`${first} is back on ${previous.replaceAll(".", "\\.")}`));
  match(stdout, words);
  equal(await currentOf(fleet, first), previous);
  deepEqual(await stateOf(fleet, others), before);
  await waitFor("control sees every node as before", async () => {
    const nodes = await fleet.nodes();
    return nodes.length === NODES.length &&
      nodes.every(({ agent_version, state }) => agent_version === "0.1.0" && state === "ready");
  });
  await Deno.remove(to, { recursive: true });
}

async function stateOf(fleet: Fleet, names: readonly string[]): Promise<readonly string[]> {
  return await Promise.all(names.map((name) => fleet.node(name).sh(UNTOUCHED)));
}

async function currentOf(fleet: Fleet, name: string): Promise<string> {
  return (await fleet.node(name).sh("readlink /opt/heddle/current")).replace("releases/", "");
}
