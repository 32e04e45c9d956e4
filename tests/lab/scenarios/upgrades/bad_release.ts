/** A release whose agent does not run: the first node is put back, and no other is touched. */
import { deepEqual, equal, match, notEqual } from "node:assert/strict";
import { join } from "node:path";
import { fleetOf, GIANT, prepareFleet, releaseOfLab } from "../../fleet.ts";
import type { Lab } from "../../lab.ts";
import { type NextRelease, writeNextRelease } from "../../next_release.ts";
import type { Scenario } from "../../scenario.ts";

export const badRelease: Scenario = {
  title: "a release that does not run is put back on the first node, and stops there",
  limitMs: 2_400_000,
  prepare: prepareFleet,
  run,
};

interface Bad {
  readonly version: string;
  readonly what: string;
  readonly how: Pick<NextRelease, "broken" | "before">;
}

/** How an agent can be bad. */
const BAD: readonly Bad[] = [
  {
    version: "0.1.1",
    what: "ends at once",
    how: {
      broken: { "heddle-agent": 'console.error("cannot start: bad magic"); Deno.exit(7);\n' },
    },
  },
  {
    version: "0.1.2",
    what: "lives, gets never ready and never registers",
    how: { broken: { "heddle-agent": "setInterval(() => {}, 1e6);\n" } },
  },
  {
    version: "0.1.3",
    what: "is well at first, and crashes while the first node is watched",
    how: { before: { "heddle-agent": "setTimeout(() => Deno.exit(9), 20_000);\n" } },
  },
];

async function run(lab: Lab): Promise<void> {
  const fleet = await lab.step("a fleet is onboarded", async () => {
    const values = { heddle_upgrade_soak_s: 30 };
    const fleet = await fleetOf(lab, { catalog: GIANT, values });
    await fleet.play("site.yml");
    return fleet;
  });
  const first = await fleet.ready("giant");
  for (const { version, what, how } of BAD) {
    await lab.step(`an agent that ${what} is put back`, async () => {
      const to = join(lab.folder, version);
      await writeNextRelease({ from: releaseOfLab(), to, version, ...how });
      const dists = JSON.stringify({ heddle_dists: { x86_64: to } });
      const { code, stdout } = await fleet.attempt("upgrade.yml", "--extra-vars", dists);
      notEqual(code, 0);
      match(stdout, /gpu-a-1 is back on 0\.1\.0/);
      if (version === "0.1.1") match(stdout, /bad magic/);
      for (const { name, agent_version, state } of await fleet.nodes()) {
        equal(agent_version, "0.1.0", name);
        equal(state, "ready", name);
      }
      for (const name of ["gpu-a-1", "gpu-a-2", "gpu-b-1"]) {
        equal(await fleet.node(name).sh("readlink /opt/heddle/current"), "releases/0.1.0", name);
      }
      deepEqual(await fleet.ready("giant"), first);
      equal((await fleet.ask("giant", "still there?")).code, 0);
    });
  }
}
