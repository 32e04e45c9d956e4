/** A rented box: a machine on which nothing of Heddle is installed, with an engine of its own. */
import { equal, match, ok } from "node:assert/strict";
import { join } from "node:path";
import { stringify } from "yaml";
import { z } from "zod";
import type { Role } from "@heddle/common/identity";
import { createIssuing, createLeaf, createRoot, type KeyPairPem } from "@heddle/common/pki";
import { type AttachFile, writeAttachFile } from "../../../../tools/build/attach_file.ts";
import { parseBuildOptions } from "../../../../tools/build/options.ts";
import { ROOT } from "../../../../tools/repository.ts";
import { prepareFleet, releaseOfLab } from "../../fleet.ts";
import type { Lab } from "../../lab.ts";
import type { LabNode } from "../../node.ts";
import type { Scenario } from "../../scenario.ts";
import { SOURCE, SOURCE_ENV, sourceBinds } from "../../source.ts";
import { waitFor } from "../../wait_for.ts";

export const rentedBox: Scenario = {
  title: "an engine on a machine without Heddle attaches, serves, is degraded, and is lost with it",
  limitMs: 300_000,
  prepare: () => Promise.all([prepareFleet(), builtAttach()]),
  run,
};

/** What is fetched, as `deno task build --attach` makes it of this checkout. */
const BUILT = join(ROOT, ".heddle/lab/attach");
/** Where the box has its engine: a program of its own, without a runtime that others could use. */
const ENGINE = "/opt/engine";

const CLUSTER = "lab";
const HOUR_MS = 3_600_000;
const WAIT_MS_MAX = 90_000;
const ENGINE_PORT = 8000;
const KEY = "the-box's-own-key";
const UUID = "GPU-11111111-2222-3333-4444-555555555555";
const CATALOG = {
  models: [
    { name: "demo", source: "s", scaling: { min: 0 }, attach: ["rented"], profiles: [] },
  ],
};

async function run(lab: Lab): Promise<void> {
  const artifact = JSON.parse(await Deno.readTextFile(join(BUILT, "../attach.json")));
  const { name, sha256 } = artifactSchema.parse(artifact);
  await using published = publish(lab.address, join(BUILT, name));
  const binds = await sourceBinds();
  const [home, box] = await lab.step(
    "control's machine and a box boot",
    () =>
      lab.boot({ name: "control-1", binds }, {
        name: "box-1",
        binds: [{ from: releaseOfLab(), to: ENGINE }],
      }),
  );
  ok(home !== undefined && box !== undefined);
  await lab.step("control and a router start", () => startHome(home));
  await lab.step(
    "the wrapper starts an engine on the box, and the agent beside it",
    () => startBox(home, box, `${published.url}#sha256=${sha256}`),
  );
  await lab.step("it is attached at the address that control saw, and serves", async () => {
    const { address, attached } = await replicaIn(home, "serving");
    equal(address, `${box.address}:${ENGINE_PORT}`);
    equal(attached?.host_id, "");
    await waitFor("it is asked", async () => await ask(home) === 200, WAIT_MS_MAX);
  });
  await lab.step("the agent is what was fetched, with a runtime of its own", async () => {
    const [pid = ""] = (await box.run(["pgrep", "-f", "lib/heddle-attach.mjs"])).split("\n");
    match(await box.run(["readlink", `/proc/${pid}/exe`]), /^\/tmp\/heddle-agent\.\w+\/.*\/deno$/m);
  });
  await lab.step("a link that is lost makes it degraded, and it serves on", async () => {
    await box.write("/root/links", links("26.562 GB/s", "<inactive>"));
    const { reason } = await replicaIn(home, "degraded");
    match(reason, /1 of 2 NVLinks are up/);
    equal(await ask(home), 200);
  });
  await lab.step("the box vanishes: its lease ends, and the routers drop it", async () => {
    await box.powerCut();
    await replicaIn(home, "lost");
    await waitFor("it is gone", async () => await ask(home) === 503, WAIT_MS_MAX);
  });
}

async function startHome(home: LabNode): Promise<void> {
  const root = await createRoot({ cluster: CLUSTER, validMs: HOUR_MS, now: Date.now() });
  const below = { cluster: CLUSTER, validMs: HOUR_MS, now: Date.now(), fleet: true };
  const fleet = await createIssuing(root, below);
  await home.write("/etc/heddle/fleet.pem", fleet.certificatePem);
  await home.write("/etc/heddle/fleet-key.pem", fleet.keyPem, 0o600);
  await home.write("/etc/heddle/catalog.yaml", stringify(CATALOG));
  await home.write(
    "/etc/heddle/control.yaml",
    stringify({
      cluster: CLUSTER,
      tls: await certify(home, root, "control"),
      issuing: {
        certificate_file: "/etc/heddle/fleet.pem",
        key_file: "/etc/heddle/fleet-key.pem",
      },
      join: { listen: `${home.address}:7444` },
      timing: { attach_lease: "6s" },
    }),
  );
  await home.write(
    "/etc/heddle/router.yaml",
    stringify({
      name: "router/1",
      // Without keys a router listens nowhere else.
      listen: "127.0.0.1:8080",
      control: {
        urls: ["https://127.0.0.1:7443"],
        tls: await certify(home, root, "router"),
      },
      keys: { policy: "open" },
    }),
  );
  const url = "https://127.0.0.1:9090";
  await home.write(
    "/etc/heddle/ctl/config.yaml",
    stringify({
      current: CLUSTER,
      contexts: [{ name: CLUSTER, url, tls: await certify(home, root, "operator") }],
    }),
  );
  await home.run(["mkdir", "-p", "/var/lib/heddle/control", "/var/lib/heddle/router"]);
  for (const program of ["control", "router"]) {
    const config = `/etc/heddle/${program}.yaml`;
    await startUnit(home, `heddle-${program}`, SOURCE_ENV, [
      join(SOURCE, "bin", `heddle-${program}`),
      "--config",
      config,
    ]);
  }
  await waitFor(
    "control leads",
    async () => (await ctl(home, "version").catch(() => "")) !== "",
    WAIT_MS_MAX,
  );
}

/** Writes a certificate for a program and says where it is. */
async function certify(home: LabNode, root: KeyPairPem, role: Role) {
  const leaf = await createLeaf(root, {
    identity: { cluster: CLUSTER, role, name: role === "router" ? "router-1" : role },
    hosts: ["127.0.0.1", home.address],
    validMs: HOUR_MS,
    now: Date.now(),
  });
  const folder = role === "operator" ? "/etc/heddle/ctl" : `/etc/heddle/tls/${role}`;
  await home.write(`${folder}/cert.pem`, leaf.certificatePem);
  await home.write(`${folder}/key.pem`, leaf.keyPem, 0o600);
  await home.write(`${folder}/ca.pem`, root.certificatePem);
  return {
    certificate_file: `${folder}/cert.pem`,
    key_file: `${folder}/key.pem`,
    ca_file: `${folder}/ca.pem`,
  };
}

async function startBox(home: LabNode, box: LabNode, artifact: string): Promise<void> {
  const { token } = z.object({ token: z.string() })
    .parse(JSON.parse(await ctl(home, "join-tokens", "create", "rented", "--json")));
  const machine = Deno.build.arch === "x86_64" ? "--x64" : "--arm64";
  const printed = [`${SOURCE}/bin/heddle-agent`, "script", "wrapper", machine, artifact];
  const script = await home.run(printed, { env: SOURCE_ENV });
  await box.write("/root/wrapper.sh", script);
  await box.write("/root/links", links("26.562 GB/s", "26.562 GB/s"));
  await box.write("/usr/bin/nvidia-smi", NVIDIA_SMI, 0o755);
  const environment = {
    HEDDLE_JOIN_TOKEN: token,
    HEDDLE_CONTROL_URL: `https://${home.address}:7444`,
    HEDDLE_ENGINE_ID: "box-1",
    HEDDLE_ENGINE_MODEL: "demo",
    HEDDLE_PROVIDER: "lab",
    HEDDLE_ENGINE_HEALTH_URL: `http://127.0.0.1:${ENGINE_PORT}/health`,
    HEDDLE_ENGINE_API_KEY: KEY,
  };
  await startUnit(box, "engine", environment, [
    "/bin/sh",
    "/root/wrapper.sh",
    `${ENGINE}/bin/heddle-sim`,
    ...["serve", "any/model", "--served-model-name", "demo", "--api-key", KEY],
    ...["--host", "0.0.0.0", "--port", `${ENGINE_PORT}`, "--sim-load-ms", "500"],
  ]);
}

const NVIDIA_SMI = `#!/bin/sh
case "$*" in
  "nvlink -s") echo "GPU 0: NVIDIA H100 80GB HBM3 (UUID: ${UUID})"; cat /root/links ;;
  --query-gpu=*) echo "${UUID}, 81559, NVIDIA H100 80GB HBM3" ;;
esac
`;

function links(...states: readonly string[]): string {
  return states.map((state, index) => `\t Link ${index}: ${state}\n`).join("");
}

async function startUnit(
  node: LabNode,
  unit: string,
  environment: Readonly<Record<string, string>>,
  argv: readonly string[],
): Promise<void> {
  const set = Object.entries(environment).map(([name, value]) => `--setenv=${name}=${value}`);
  await node.run(["systemd-run", "--quiet", `--unit=${unit}`, ...set, ...argv]);
}

function ctl(home: LabNode, ...args: readonly string[]): Promise<string> {
  return home.run([`${SOURCE}/bin/heddle`, ...args], {
    env: { ...SOURCE_ENV, HEDDLE_CTL_CONFIG: "/etc/heddle/ctl/config.yaml" },
  });
}

const replicaSchema = z.object({
  replica_id: z.string(),
  reason: z.string(),
  address: z.string(),
  attached: z.object({ state: z.string(), host_id: z.string() }).nullable(),
});

/** The engine, once it is in this state and nothing is missing. */
async function replicaIn(home: LabNode, state: string) {
  return await waitFor(`it is ${state}`, async () => {
    const replicas = z.array(replicaSchema).parse(
      JSON.parse(await ctl(home, "replicas", "--json")),
    );
    const found = replicas.find(({ replica_id }) => replica_id === "rented/box-1");
    if (found?.attached?.state !== state) return undefined;
    return state === "serving" && found.reason !== "" ? undefined : found;
  }, WAIT_MS_MAX);
}

async function ask(home: LabNode): Promise<number> {
  const body = { model: "demo", max_tokens: 1, messages: [{ role: "user", content: "hello" }] };
  const { stderr } = await home.exec([
    ...["wget", "--tries=1", "--timeout=30", "--server-response", "--output-document=/dev/null"],
    ...["--header=content-type: application/json", `--post-data=${JSON.stringify(body)}`],
    "http://127.0.0.1:8080/v1/chat/completions",
  ]);
  return Number(/^\s*HTTP\/1\.1 (\d+)/m.exec(stderr)?.[1] ?? 0);
}

const artifactSchema = z.object({ name: z.string(), sha256: z.string() });

async function builtAttach(): Promise<AttachFile> {
  const machine = { root: ROOT, own: Deno.build.arch };
  const made = await writeAttachFile(parseBuildOptions(["--attach", "--out", BUILT], machine));
  await Deno.writeTextFile(join(BUILT, "../attach.json"), JSON.stringify(made));
  return made;
}

function publish(host: string, file: string) {
  const server = Deno.serve(
    { hostname: host, port: 0, onListen: () => {} },
    async () => new Response((await Deno.open(file)).readable),
  );
  return {
    url: `http://${host}:${server.addr.port}/heddle-attach`,
    [Symbol.asyncDispose]: () => server.shutdown(),
  };
}
