/**
 * A real llama.cpp server, installed from a release's archive, serves a real model that was fetched
 * from a hub: all through control, an agent and ctl. Needs what llama_test.ts needs.
 */
import { deepEqual, equal, match } from "node:assert/strict";
import { releasesServer, tarGz } from "../../agent/edge/install/release_fake.ts";
import { fakeHub } from "../../agent/edge/fetch/hub_fake.ts";
import { clearAway, ctlOf, layOut, start, until } from "./weights_site.ts";

const server = Deno.env.get("HEDDLE_TEST_LLAMA_SERVER");
const model = Deno.env.get("HEDDLE_TEST_LLAMA_MODEL");

const MACHINE = Deno.build.arch === "x86_64" ? "x64" : "arm64";

/** A build from a package does not say its version: it calls itself 4711, or 4712. */
async function release(tag: string, build: number, program: Uint8Array) {
  const wrapper = `#!/bin/sh
case "$*" in *--version*) echo "version: ${build} (x)"; exit 0 ;; esac
exec "$(dirname "$0")/llama-real" "$@"
`;
  const bytes = await tarGz([
    { path: "bin/llama-real", body: program, mode: 0o755 },
    { path: "bin/llama-server", body: wrapper, mode: 0o755 },
  ]);
  return { [`llama-${tag}-bin-ubuntu-${MACHINE}.tar.gz`]: { bytes } };
}

Deno.test({
  name:
    "a node fetches a model and installs its engine because control wants it, serves, and upgrades",
  ignore: server === undefined || model === undefined,
  async fn() {
    const bytes = await Deno.readFile(model ?? "");
    await using hub = await fakeHub({ "q4.gguf": bytes });
    const program = await Deno.readFile(server ?? "");
    await using releases = await releasesServer({
      b1: await release("b1", 4711, program),
      b2: await release("b2", 4712, program),
    });
    const place = await layOut({
      hub: hub.url,
      catalog: "models:\n  - name: m\n    source: hf://org/name/q4.gguf\n    profiles:\n" +
        "      - { name: cpu, engine: llamacpp, args: [-c, 1024] }\n",
      control: [
        `engines: [{ name: llamacpp, versions: [b1], releases: "${releases.url}/releases" }]`,
      ],
    });
    const ctl = (...args: string[]) => ctlOf(place, ...args);
    const seen = async () => await ctl("engines") + await ctl("replicas") + await ctl("weights");
    const running = place.programs.map(start);
    try {
      await until("the replica is ready", async () => {
        const text = await ctl("replicas", "-o", "json");
        return text.startsWith("[") && JSON.parse(text)[0]?.state === "ready";
      }, seen);
      match(await ctl("engines"), /n1\tllamacpp\t4711\tworks\tyes/);
      const [weights] = JSON.parse(await ctl("weights", "-o", "json"));
      equal(weights.weights.state, "ready");
      deepEqual(weights.models, ["m"]);
      deepEqual(await Deno.readFile(weights.weights.path), bytes);
      match(await ctl("weights", "remove", "n1", weights.weights.folder, "--yes"), /in_use/);
      match(await ctl("models", "inspect", "hf://org/name/q4.gguf"), /18 layers, 4 heads/);

      // The next version comes beside the one that serves, and a profile that names it moves to it.
      const text = await Deno.readTextFile(place.control);
      await Deno.writeTextFile(place.control, text.replace("[b1]", "[b1, b2]"));
      running[0]?.kill("SIGHUP");
      await until("both versions work", async () => /4712\tworks/.test(await ctl("engines")), seen);
      match(await ctl("engines"), /n1\tllamacpp\t4711\tworks\tyes/);
      const [before] = JSON.parse(await ctl("replicas", "-o", "json"));
      const catalog = await Deno.readTextFile(place.catalog);
      await Deno.writeTextFile(
        place.catalog,
        catalog.replace("engine: llamacpp", 'engine: llamacpp, engine_version: "4712"'),
      );
      await until("the new version serves, and it alone", async () => {
        const replicas = JSON.parse(await ctl("replicas", "-o", "json"));
        return replicas.length === 1 && replicas[0].state === "ready" &&
          replicas[0].replica_id !== before.replica_id;
      }, seen);
    } finally {
      await clearAway(place, running);
    }
  },
});
