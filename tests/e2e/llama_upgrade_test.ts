/**
 * A real llama.cpp server, replaced by a real one of another version under requests. Where
 * HEDDLE_TEST_LLAMA_SERVER, HEDDLE_TEST_LLAMA_OLDER_SERVER and HEDDLE_TEST_LLAMA_MODEL name them; see
 * CONTRIBUTING.md. Elsewhere this test is reported as skipped.
 */
import { equal, notEqual, ok } from "node:assert/strict";
import { join } from "node:path";
import OpenAI from "openai";
import { parse, stringify } from "yaml";
import { engineVersion } from "../../agent/core/engine_version.ts";
import { releasesServer, tarGz } from "../../agent/edge/install/release_fake.ts";
import { eventually, EVENTUALLY_MS_MAX, Heddle, reserve, runCommand } from "./heddle.ts";

const older = Deno.env.get("HEDDLE_TEST_LLAMA_OLDER_SERVER") ?? "";
const newer = Deno.env.get("HEDDLE_TEST_LLAMA_SERVER") ?? "";
const model = Deno.env.get("HEDDLE_TEST_LLAMA_MODEL") ?? "";

const TAG = "b2";
const MACHINE = Deno.build.arch === "x86_64" ? "x64" : "arm64";
/** Loading a real model twice, on a machine that is busy with other things. */
const UPGRADED_MS_MAX = 5 * EVENTUALLY_MS_MAX;

async function versionOf(server: string): Promise<string> {
  const { stdout, stderr } = await runCommand(server, ["--version"]);
  return engineVersion(`${stdout}\n${stderr}`) ?? "";
}

/** Changes a configuration file. */
async function change(file: string, edit: (config: Record<string, unknown>) => unknown) {
  await Deno.writeTextFile(file, stringify(edit(parse(await Deno.readTextFile(file)))));
}

Deno.test({
  name:
    "a real llama.cpp server is installed and takes over from an older one, and no request fails",
  ignore: older === "" || newer === "" || model === "",
  async fn() {
    const [from, to] = [await versionOf(older), await versionOf(newer)];
    notEqual(from, to, "want two versions");
    await using releases = await releasesServer({
      [TAG]: {
        [`llama-${TAG}-bin-ubuntu-${MACHINE}.tar.gz`]: {
          bytes: await tarGz([
            { path: "bin/llama-server", body: await Deno.readFile(newer), mode: 0o755 },
          ]),
        },
      },
    });
    await using place = await reserve();
    await using heddle = await Heddle.start(place, [
      ...["--engine", "llamacpp", "--model", model, "--engine-path", older],
    ], { readyMs: UPGRADED_MS_MAX });
    const client = new OpenAI({ baseURL: heddle.openaiUrl, apiKey: "none", maxRetries: 0 });
    let asked = 0;
    const ask = async () => {
      const { usage } = await client.chat.completions.create({
        model: "default",
        max_tokens: 4,
        messages: [{ role: "user", content: "Name a colour." }],
      });
      ok((usage?.completion_tokens ?? 0) > 0);
      asked++;
    };
    await ask();
    const [before] = await heddle.replicas();
    const [node] = JSON.parse((await heddle.ctl("nodes", "--json")).stdout);
    await change(join(heddle.state, "agents", node.name, "agent.yaml"), (config) => ({
      ...config,
      engine_installs: { folder: join(heddle.state, "agents", node.name, "engines") },
    }));
    await change(join(heddle.state, "control/control.yaml"), (config) => ({
      ...config,
      engines: [{ name: "llamacpp", versions: [TAG], releases: `${releases.url}/releases` }],
    }));
    await heddle.killProgram(`agents/${node.name}`);
    await heddle.killProgram("control");
    await eventually("the newer one is installed", async () => {
      const { stdout } = await heddle.ctl("engines");
      return stdout.includes(to) || undefined;
    }, UPGRADED_MS_MAX);
    await ask();
    equal((await heddle.replicas())[0]?.replica_id, before?.replica_id, "nothing was restarted");
    const pinned = join(heddle.state, "pinned.yaml");
    await Deno.copyFile(join(heddle.state, "control/catalog.yaml"), pinned);
    await change(pinned, (catalog) =>
      JSON.parse(
        JSON.stringify(catalog).replace('"name":"cpu"', `"name":"cpu","engine_version":"${to}"`),
      ));
    const applied = await heddle.ctl("apply", pinned, "--yes");
    equal(applied.code, 0, applied.stderr);
    await eventually("the newer one serves, alone", async () => {
      await ask();
      const replicas = (await heddle.replicas()).filter(({ state }) => state !== "stopped");
      const [after] = replicas;
      return replicas.length === 1 && after?.state === "ready" &&
          after.replica_id !== before?.replica_id || undefined;
    }, UPGRADED_MS_MAX);
    await ask();
    const { stdout } = await heddle.ctl("engines");
    ok(stdout.includes(from) && stdout.includes(to), stdout);
    ok(asked > 3, `only ${asked} requests`);
  },
});
