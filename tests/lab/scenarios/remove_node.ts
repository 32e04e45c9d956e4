/** A node leaves the fleet, cleaned and without harm, and comes back; certificates are all renewed. */
import { deepEqual, equal, match, notEqual } from "node:assert/strict";
import { fleetOf, prepareFleet } from "../fleet.ts";
import type { Lab } from "../lab.ts";
import type { Scenario } from "../scenario.ts";
import { Traffic } from "../traffic.ts";
import { waitFor } from "../wait_for.ts";

export const removeNode: Scenario = {
  title: "a node is drained, cleaned and removed under traffic, and added back; certificates renew",
  limitMs: 2_400_000,
  prepare: prepareFleet,
  run,
};

const NODE = "gpu-b-1";

/** A model on one GPU of any node, so that it can go elsewhere. */
const CATALOG = `models:
  - name: small
    source: demo
    scaling: { min: 3, max: 3 }
    profiles:
      - { name: one-gpu, engine: sim, gpu_class: h100-80g }
`;

async function run(lab: Lab): Promise<void> {
  const fleet = await lab.step("a fleet is onboarded", async () => {
    const fleet = await fleetOf(lab, { catalog: CATALOG });
    await fleet.play("site.yml");
    await fleet.ready("small");
    return fleet;
  });
  const serials = () =>
    Promise.all(
      lab.nodes.map((node) =>
        node.sh(
          "for each in /etc/heddle/tls/*/cert.pem; do openssl x509 -in $each -noout -serial; done",
        )
      ),
    );
  await lab.step("every certificate is renewed, and nothing restarts", async () => {
    const before = await serials();
    const pid =
      "systemctl show --property=MainPID --value heddle-agent heddle-control heddle-router@1";
    const pids = await Promise.all(lab.nodes.map((node) => node.sh(pid)));
    const traffic = await Traffic.start(fleet, "small", 2);
    await fleet.play("rotate_certs.yml");
    await traffic.stop();
    deepEqual(traffic.failures, []);
    const after = await serials();
    for (const [index, serial] of before.entries()) notEqual(after[index], serial);
    deepEqual(await Promise.all(lab.nodes.map((node) => node.sh(pid))), pids);
  });
  const removal = ["remove_node.yml", "--extra-vars", `node=${NODE}`] as const;
  await lab.step("the node is removed under traffic, at the second try", async () => {
    const traffic = await Traffic.start(fleet, "small", 2);
    await fleet.cutShort(/TASK \[Remove what is Heddle's\]/, ...removal);
    await fleet.play(...removal);
    await traffic.stop();
    lab.say(`         ${traffic.served} requests, ${traffic.failures.length} failed`);
    deepEqual(traffic.failures, []);
  });
  await lab.step("control has forgotten it, and lets its certificates in no more", async () => {
    equal((await fleet.nodes()).some(({ name }) => name === NODE), false);
    match(await fleet.heddle("ca", "struck"), new RegExp(`agent/${NODE}`));
  });
  await lab.step("nothing of Heddle is left on it but weights", async () => {
    const left = await fleet.node(NODE).sh(
      "find / -xdev -path /proc -prune -o -path /sys -prune -o " +
        "-path '/var/lib/heddle/models/*' -prune -o -iname '*heddle*' -print",
    );
    equal(left, "/var/lib/heddle");
    equal(await fleet.node(NODE).sh("ps -e -o args= | grep -c '[h]eddle' || true"), "0");
  });
  await lab.step(
    "it comes back with the playbook, and takes part once it is uncordoned",
    async () => {
      await fleet.play("site.yml");
      await fleet.node("control-1").run(["/usr/local/bin/heddle", "uncordon", NODE]);
      await waitFor("the node is ready", async () => {
        return (await fleet.nodes()).some(({ name, state }) => name === NODE && state === "ready");
      });
    },
  );
  await lab.step("one that cannot be reached is kept, unless it is said to be gone", async () => {
    await fleet.node(NODE).link("down");
    const { code, stdout } = await fleet.attempt(...removal);
    notEqual(code, 0);
    match(stdout.replaceAll(/\s+/g, " "), new RegExp(`${NODE} is drained, and cannot be reached`));
    equal((await fleet.nodes()).some(({ name }) => name === NODE), true);
    await fleet.play(...removal, "--extra-vars", JSON.stringify({ gone: true }));
    equal((await fleet.nodes()).some(({ name }) => name === NODE), false);
  });
}
