/** Engines are installed by a user and a unit of their own, which a dying agent does not take along. */
import { equal, match, ok } from "node:assert/strict";
import { stringify } from "yaml";
import { ggufBytes, LLAMA_8B } from "@heddle/common/model/gguf_fake";
import { releasesServer, tarGz } from "../../../agent/edge/install/release_fake.ts";
import { bootAlone, ctl, ENGINE_USER, replicas, startAlone } from "../alone.ts";
import type { Lab } from "../lab.ts";
import type { LabNode } from "../node.ts";
import type { Scenario } from "../scenario.ts";
import { SOURCE_ENV } from "../source.ts";
import { waitFor } from "../wait_for.ts";

export const engines: Scenario = {
  title: "engines that control wants are installed apart from the agent, and run as nobody's own",
  limitMs: 240_000,
  run,
};

const INSTALL_USER = "heddle-install";
const FOLDER = "/opt/heddle/engines";
const MODELS = "/var/lib/heddle/models";
const MODEL = `${MODELS}/m.gguf`;
/** What the second version waits for before it says which one it is. */
const GO = "/opt/lab/go";
const MACHINE = Deno.build.arch === "x86_64" ? "x64" : "arm64";

const CATALOG = {
  models: [{
    name: "demo",
    source: MODEL,
    scaling: { min: 1, max: 1 },
    profiles: [{ name: "cpu", engine: "llamacpp", args: ["-c", "512"] }],
  }],
};

async function run(lab: Lab): Promise<void> {
  await using releases = await releasesServer({
    b1: await release("b1", 9001, ""),
    b2: await release("b2", 9002, `while [ ! -e ${GO} ]; do sleep 0.2; done; `),
  }, lab.address);
  const wanted = (...versions: readonly string[]) => ({
    engines: [{ name: "llamacpp", versions, releases: `${releases.url}/releases` }],
  });
  const node = await lab.step(
    "a node boots, with users and folders as the role makes them",
    () => prepared(lab),
  );
  await lab.step("it installs what control wants, as a user of its own", async () => {
    const agent = { engine_installs: { env: SOURCE_ENV } };
    await startAlone(node, { catalog: CATALOG, control: wanted("b1"), agent });
    await works(node, 9001);
    const script = `find ${FOLDER}/llamacpp-b1 -exec stat -c '%U' {} + | sort -u`;
    equal((await node.sh(script)).trim(), INSTALL_USER);
  });
  await lab.step("the engine runs from there as the engines' user, who can change nothing", () => {
    return waitFor("the engine runs", async () => {
      const [replica] = await replicas(node).catch(() => []);
      const pid = replica?.shards[0]?.pid ?? undefined;
      if (pid === undefined) return undefined;
      match(await node.sh(`ps -o user= -p ${pid}`), new RegExp(`^${ENGINE_USER.slice(0, 7)}`));
      const look = ["/bin/sh", "-c", `touch ${FOLDER}/x ${FOLDER}/llamacpp-b1/x`];
      const { stderr } = await node.exec(look, { user: ENGINE_USER });
      equal([...stderr.matchAll(/Permission denied/g)].length, 2);
      return true;
    }, 60_000);
  });
  const unit = await lab.step("a reload of control is enough for another version", async () => {
    await node.write(
      "/etc/heddle/control.yaml",
      stringify({ cluster: "lab", ...wanted("b1", "b2") }),
    );
    await node.run(["systemctl", "reload", "heddle-control"]);
    return await waitFor("the second version is being tried", () => installing(node), 60_000);
  });
  await lab.step("who installs may write the engines' folder and no more", async () => {
    const shown = await node.run(["systemctl", "show", "-p", PROPERTIES, unit.name]);
    match(shown, new RegExp(`^User=${INSTALL_USER}$`, "m"));
    match(shown, /^NoNewPrivileges=yes$/m);
    match(shown, /^ProtectSystem=strict$/m);
    match(shown, new RegExp(`^ReadWritePaths=${FOLDER}$`, "m"));
    match(shown, /^CapabilityBoundingSet=$/m);
  });
  await lab.step("an agent that is killed meanwhile finds it, and what it installed", async () => {
    await node.run(["systemctl", "kill", "-s", "KILL", "heddle-agent"]);
    await waitFor("the agent is back", async () => {
      const state = (await node.exec(["systemctl", "is-active", "heddle-agent"])).stdout.trim();
      const [replica] = await replicas(node).catch(() => []);
      return state === "active" && replica?.shards[0]?.state === "loading" || undefined;
    }, 60_000);
    equal((await installing(node))?.pid, unit.pid);
    await node.write(GO, "");
    await works(node, 9002);
    ok(/9001\tworks/.test(await ctl(node, "engines")), "the first one is still there");
  });
}

const PROPERTIES = "User,NoNewPrivileges,ProtectSystem,ReadWritePaths,CapabilityBoundingSet";

/** An archive with a server that says its version, after `before`, and otherwise goes on loading. */
async function release(tag: string, build: number, before: string) {
  const server = `#!/bin/sh
case " $* " in
  *" --version "*) ${before}echo "version: ${build} (x)"; exit 0 ;;
esac
exec sleep 3600
`;
  const bytes = await tarGz([{ path: "bin/llama-server", body: server, mode: 0o755 }]);
  return { [`llama-${tag}-bin-ubuntu-${MACHINE}.tar.gz`]: { bytes } };
}

async function prepared(lab: Lab): Promise<LabNode> {
  const node = await bootAlone(lab);
  await node.run(["useradd", "--system", "--no-create-home", INSTALL_USER]);
  // As the agent's role makes it.
  await node.run(["install", "-d", "-o", INSTALL_USER, "-g", "root", "-m", "0755", FOLDER]);
  const model = ggufBytes(LLAMA_8B).toBase64();
  await node.run(["install", "-d", "-o", "root", "-g", ENGINE_USER, "-m", "2750", MODELS]);
  await node.sh(`echo ${model} | base64 -d >${MODEL}; chmod 0640 ${MODEL}; mkdir -p /opt/lab`);
  return node;
}

async function works(node: LabNode, build: number): Promise<void> {
  const line = new RegExp(`llamacpp\t${build}\tworks\tyes`);
  await waitFor(`llama.cpp ${build} works`, async () => {
    return line.test(await ctl(node, "engines").catch(() => "")) || undefined;
  }, 90_000);
}

/** The unit that tries an engine, and its first process; undefined while there is none. */
async function installing(node: LabNode) {
  const list = ["systemctl", "list-units", "--plain", "--no-legend", "heddle-install-*"];
  const name = /^\S+/.exec(await node.run(list))?.[0];
  if (name === undefined || !/version|trying/.test(await ctl(node, "engines"))) return undefined;
  return { name, pid: (await node.run(["systemctl", "show", "-p", "MainPID", name])).trim() };
}
