/** Engines under a real systemd: they outlive whatever becomes of the agent, and are ended whole. */
import { equal, ok } from "node:assert/strict";
import type { Lab } from "../lab.ts";
import type { Scenario } from "../scenario.ts";
import { SOURCE_ENV, sourceBinds, testArguments } from "../source.ts";

const USER = "heddle-engine";

export const systemdLauncher: Scenario = {
  title: "engines as units: they survive the agent, tell how they ended, and leak no secret",
  limitMs: 300_000,
  run,
};

async function run(lab: Lab): Promise<void> {
  const [node] = await lab.step(
    "a node boots",
    async () => lab.boot({ name: "gpu-1", binds: await sourceBinds() }),
  );
  ok(node !== undefined);
  await node.run(["useradd", "--system", "--no-create-home", "--shell=/usr/sbin/nologin", USER]);
  await lab.step("the launcher keeps the contract that all launchers are held to", async () => {
    const { code, stdout, stderr } = await node.exec(
      testArguments("agent/edge/launcher/systemd_test.ts"),
      { env: { ...SOURCE_ENV, HEDDLE_TEST_ENGINE_USER: USER }, limitMs: 120_000 },
    );
    equal(code, 0, `${stdout}\n${stderr}`);
  });
}
