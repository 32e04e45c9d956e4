/** Weights go from a hub to an engine through three users, and nobody else gets at them or at the token. */
import { deepEqual, equal, match, ok } from "node:assert/strict";
import { ggufBytes, LLAMA_8B } from "@heddle/common/model/gguf_fake";
import { fakeHub, someBytes } from "../../../agent/edge/fetch/hub_fake.ts";
import { bootAlone, ctl, ENGINE_USER, replicas, startAlone, STATE } from "../alone.ts";
import type { Lab } from "../lab.ts";
import type { LabNode } from "../node.ts";
import type { Scenario } from "../scenario.ts";
import { SOURCE_ENV } from "../source.ts";
import { waitFor } from "../wait_for.ts";

export const weights: Scenario = {
  title: "weights that a node fetched are read by its engines, and by nobody else; no token leaks",
  limitMs: 180_000,
  run,
};

const TOKEN = "hf_a-very-secret-token";
const TOKEN_FILE = "/etc/heddle/hub-token";
const MODELS = "/var/lib/heddle/models";
const FETCH_USER = "heddle-fetch";
const BYTES = 300_000;

/** Says what it can do with its model, as whom, and then goes on loading. */
const ENGINE = "/opt/lab/llama-server";
const ENGINE_SCRIPT = `#!/bin/sh
case " $* " in
  *" --version "*) echo "version: 4711 (0)"; exit 0 ;;
esac
while [ $# -gt 0 ]; do
  [ "$1" != -m ] || model=$2
  shift
done
echo "user=$(id -un)"
echo "sum=$(sha256sum <"$model" | cut -d' ' -f1)"
folder=$(dirname "$model")
if touch "$model" "$folder/new" 2>/dev/null; then echo "may=write"; else echo "may=read"; fi
if cat ${TOKEN_FILE} 2>/dev/null; then echo "token=read"; else echo "token=refused"; fi
env | grep -c "${TOKEN}" | sed s/^/tokens-in-env=/
echo "#done"
exec sleep 3600
`;

const CATALOG = {
  models: [{
    name: "demo",
    source: "hf://org/name/q4.gguf",
    scaling: { min: 1, max: 1 },
    profiles: [{ name: "cpu", engine: "llamacpp", args: ["-c", "512"] }],
  }],
};

async function run(lab: Lab): Promise<void> {
  const head = ggufBytes(LLAMA_8B);
  const bytes = new Uint8Array([...head, ...someBytes(BYTES - head.length)]);
  const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)).toHex();
  await using hub = await fakeHub({ "q4.gguf": bytes }, lab.address);
  hub.token = TOKEN;
  const node = await lab.step(
    "a node boots, with users and folders as the role makes them",
    () => prepared(lab),
  );
  const said = await lab.step(
    "it fetches a model with its token, and starts an engine",
    async () => {
      const agent = {
        weights: { hub: hub.url, token_file: TOKEN_FILE, reserve: "1MiB", env: SOURCE_ENV },
      };
      await startAlone(node, { catalog: CATALOG, engine: ENGINE, engineName: "llamacpp", agent });
      return await waitFor("the engine has said all", () => saidBy(node), 90_000);
    },
  );
  await lab.step("the engine's user reads the very bytes, and can change none of them", () => {
    deepEqual(said, [
      `user=${ENGINE_USER}`,
      `sum=${hash}`,
      "may=read",
      "token=refused",
      "tokens-in-env=0",
    ]);
    return Promise.resolve();
  });
  await lab.step(
    "they belong to who fetched, and anyone else sees nothing of them",
    () => closed(node),
  );
  await lab.step("nobody finds the token, nor does the engine's user", () => keepsToken(node));
  await lab.step(
    "a restart of the agent fetches nothing anew, and the engine goes on",
    async () => {
      const before = hub.asked.filter(({ storage }) => storage).length;
      ok(before > 0, "it was fetched from the hub");
      const pid = await enginePid(node);
      await node.run(["systemctl", "restart", "heddle-agent"]);
      await waitFor("the agent tells of it", async () => {
        const [replica] = await replicas(node).catch(() => []);
        return replica?.shards[0]?.state === "loading";
      });
      equal(await enginePid(node), pid);
      equal(hub.asked.filter(({ storage }) => storage).length, before);
    },
  );
}

async function prepared(lab: Lab): Promise<LabNode> {
  const node = await bootAlone(lab);
  await node.run(["useradd", "--system", "--no-create-home", FETCH_USER]);
  // As the agent's role makes them.
  await node.run(["install", "-d", "-o", "root", "-g", ENGINE_USER, "-m", "2750", MODELS]);
  const own = ["-o", FETCH_USER, "-g", ENGINE_USER, "-m", "2750"];
  await node.run(["install", "-d", ...own, `${MODELS}/heddle`]);
  await node.write(TOKEN_FILE, `${TOKEN}\n`, 0o600);
  await node.write(ENGINE, ENGINE_SCRIPT, 0o755);
  return node;
}

/** What the engine said, line by line; undefined until it has said all. */
async function saidBy(node: LabNode): Promise<readonly string[] | undefined> {
  const [replica] = await replicas(node).catch(() => []);
  if (replica === undefined) return undefined;
  const log = await ctl(node, "logs", replica.replica_id).catch(() => "");
  if (!log.includes("#done")) return undefined;
  return [...log.matchAll(/(?:user|sum|may|token|tokens-in-env)=\S+/g)].map(([line]) => line);
}

async function closed(node: LabNode): Promise<void> {
  const script = `find ${MODELS}/heddle -name '*.gguf' -exec stat -c '%U:%G %a' {} +`;
  match(await node.sh(script), /^heddle-fetch:heddle-engine 640$/m);
  const folders = await node.sh(`find ${MODELS} -type d -exec stat -c '%G %a' {} +`);
  for (const folder of folders.trim().split("\n")) equal(folder, `${ENGINE_USER} 2750`);
  const look = ["/bin/sh", "-c", `ls ${MODELS} ${MODELS}/heddle; cat ${MODELS}/heddle/*/*`];
  const { stdout, stderr } = await node.exec(look, { user: "nobody" });
  equal(stdout, "");
  match(stderr, /Permission denied/);
}

const SEARCH = `
grep -rs . /etc/heddle /run/heddle /run/credentials /run/systemd/transient ${STATE} ${MODELS} /tmp
for each in /proc/[0-9]*; do cat "$each/cmdline" "$each/environ"; done
systemctl show '*'
journalctl --no-pager
true`;

async function keepsToken(node: LabNode): Promise<void> {
  for (const user of ["nobody", ENGINE_USER]) {
    const { stdout, stderr } = await node.exec(["/bin/sh", "-c", SEARCH], { user });
    ok(stdout.includes("heddle-agent.service"), "it did look");
    ok(!`${stdout}${stderr}`.includes(TOKEN), `${user} finds the token`);
  }
  // Who may look does find it: the search is able to.
  const { stdout } = await node.exec(["/bin/sh", "-c", SEARCH]);
  ok(stdout.includes(TOKEN));
}

async function enginePid(node: LabNode): Promise<string> {
  const pids = await node.sh(`ps -u ${ENGINE_USER} -o pid=`);
  match(pids.trim(), /^\d+$/);
  return pids.trim();
}
