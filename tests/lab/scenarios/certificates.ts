/** Certificates end, by their time or by an operator, and are renewed; engines notice none of it. */
import { deepEqual, equal, match, notEqual } from "node:assert/strict";
import { join } from "node:path";
import { runCommand } from "../command.ts";
import { type Fleet, fleetOf, GIANT, prepareFleet, releaseOfLab } from "../fleet.ts";
import type { Lab } from "../lab.ts";
import type { Scenario } from "../scenario.ts";
import { Traffic } from "../traffic.ts";
import { waitFor } from "../wait_for.ts";

export const certificates: Scenario = {
  title: "a certificate is renewed by itself, one expires, one is struck: engines and traffic stay",
  limitMs: 1_800_000,
  prepare: prepareFleet,
  run,
};

const CERT = "/etc/heddle/tls/agent/cert.pem";
const FLEET_KEY = "/etc/heddle/tls/control/fleet-key.pem";

async function run(lab: Lab): Promise<void> {
  const fleet = await lab.step("a fleet is onboarded", async () => {
    const fleet = await fleetOf(lab, { catalog: GIANT });
    await fleet.play("site.yml");
    return fleet;
  });
  const first = await fleet.ready("giant");
  const traffic = await Traffic.start(fleet, "giant", 2);
  await lab.step("control renews a certificate over the session before it ends", async () => {
    const short = await install(fleet, "gpu-a-1", "45s");
    await waitFor(
      "another certificate",
      async () => await serialOf(fleet, "gpu-a-1") !== short,
      60_000,
    );
    const issuer = await fleet.node("gpu-a-1").sh(`openssl x509 -in ${CERT} -noout -issuer`);
    match(issuer, /Heddle fleet authority of lab/);
    await openssl(fleet, "gpu-a-1");
    equal(await stateOf(fleet, "gpu-a-1"), "ready");
    // A renewed one holds as long as the one before: too short for what comes.
    await install(fleet, "gpu-a-1", "90d");
    await waitFor("ready", () => isState(fleet, "gpu-a-1", "ready"));
  });
  await lab.step(
    "one that cannot be renewed expires: the connection ends, and says why",
    async () => {
      const control = fleet.node("control-1");
      await control.run(["mv", FLEET_KEY, `${FLEET_KEY}.away`]);
      await install(fleet, "gpu-a-2", "25s");
      await waitFor("unreachable", () => isState(fleet, "gpu-a-2", "unreachable"), 90_000);
      match(await fleet.node("gpu-a-2").journal("heddle-agent"), /the certificate was refused/);
      match(await control.journal("heddle-control"), /it has expired/);
      await control.run(["mv", `${FLEET_KEY}.away`, FLEET_KEY]);
      await install(fleet, "gpu-a-2", "90d");
      await waitFor("ready", () => isState(fleet, "gpu-a-2", "ready"));
    },
  );
  await lab.step("one that is struck counts no more, at once", async () => {
    const heddle = ["/usr/local/bin/heddle", "ca"];
    const control = fleet.node("control-1");
    await control.run([...heddle, "strike", "agent/gpu-b-1", "--yes", "--reason", "stolen"]);
    await waitFor("unreachable", () => isState(fleet, "gpu-b-1", "unreachable"), 60_000);
    match(await fleet.node("gpu-b-1").journal("heddle-agent"), /the certificate was refused/);
    match(await control.run([...heddle, "struck"]), /agent\/gpu-b-1.*stolen/);
    await control.run(["systemctl", "restart", "heddle-control"]);
    await waitFor(
      "control has heard from the others",
      () => isState(fleet, "gpu-a-1", "ready"),
      90_000,
    );
    notEqual(await stateOf(fleet, "gpu-b-1"), "ready");
  });
  await lab.step("the playbook gives it another, and it takes part again", async () => {
    await fleet.play("rotate_certs.yml", "--limit", "gpu-b-1");
    await waitFor("ready", () => isState(fleet, "gpu-b-1", "ready"), 60_000);
  });
  await lab.step("no request failed, and engines have the pids they had", async () => {
    await traffic.stop();
    lab.say(`         ${traffic.served} requests, ${traffic.failures.length} failed`);
    deepEqual(traffic.failures, []);
    deepEqual(await fleet.ready("giant"), first);
  });
}

/** Gives a node's agent a certificate that holds for so long, and has it used. Returns its serial. */
async function install(fleet: Fleet, node: string, valid: string): Promise<string> {
  const machine = fleet.node(node);
  const request = await machine.run([
    "env",
    "HEDDLE_TLS=/etc/heddle/tls/agent",
    "/opt/heddle/current/bin/heddle",
    "ca",
    "request",
  ]);
  const chain = await runCommand([
    "env",
    `HEDDLE_CA=${join(fleet.folder, "ca")}`,
    join(releaseOfLab(), "bin/heddle"),
    ...["ca", "sign", "--role", "agent", "--name", node, "--host", node],
    ...["--host", machine.address, "--valid", valid, "--renew-before", "1s"],
  ], { input: new TextEncoder().encode(request) });
  await machine.write(CERT, chain);
  await machine.run(["systemctl", "restart", "heddle-agent"]);
  return await serialOf(fleet, node);
}

function serialOf(fleet: Fleet, node: string): Promise<string> {
  return fleet.node(node).sh(`openssl x509 -in ${CERT} -noout -serial`);
}

async function openssl(fleet: Fleet, node: string): Promise<void> {
  const verify = `openssl verify -CAfile /etc/heddle/tls/agent/ca.pem -untrusted ${CERT} ${CERT}`;
  match(await fleet.node(node).sh(verify), /: OK/);
}

async function stateOf(fleet: Fleet, node: string): Promise<string | undefined> {
  return (await fleet.nodes()).find(({ name }) => name === node)?.state;
}

async function isState(fleet: Fleet, node: string, state: string): Promise<boolean> {
  // Control restarts in between.
  return await stateOf(fleet, node).catch(() => undefined) === state;
}
