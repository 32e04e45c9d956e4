import { deepEqual, equal, match } from "node:assert/strict";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { eventually } from "../../eventually_fake.ts";
import { EngineVersions } from "./versions.ts";

const SHIM = fileURLToPath(new URL("../../../bin/heddle-shim", import.meta.url));

/** Looks once at engines that are shell scripts. */
async function look(
  scripts: readonly string[],
  options: { env?: Record<string, string>; secondsMax?: number } = {},
) {
  const root = await Deno.makeTempDir();
  try {
    const engines = await Promise.all(scripts.map(async (script, index) => {
      const path = join(root, `engine-${index}`);
      await Deno.writeTextFile(path, `#!/bin/sh\n${script}\n`, { mode: 0o755 });
      return {
        name: "vllm",
        path,
        versionArgs: ["--version"],
        env: { PATH: "/usr/bin:/bin", ...options.env },
      };
    }));
    let changes = 0;
    const versions = new EngineVersions({
      shim: SHIM,
      stateDirectory: root,
      engines: () => engines,
      secondsMax: options.secondsMax ?? 20,
      onChange: () => changes++,
    });
    equal(versions.survey.probed, false, "nothing has been looked at yet");
    await versions.look(new AbortController().signal);
    const before = changes;
    await versions.look(new AbortController().signal);
    equal(changes, before, "nothing changed");
    return versions.survey;
  } finally {
    await Deno.remove(root, { recursive: true });
  }
}

Deno.test("EngineVersions tells of what works, in the order of the configuration", async () => {
  const { probed, engines, problems } = await look([
    'echo "WARNING: slow import" >&2; [ "$1" = --version ] && echo 0.28.1',
    "echo version: 11069 '(00dc8057)' >&2",
  ]);
  equal(probed, true);
  deepEqual(engines.map(({ version }) => version), ["0.28.1", "11069"]);
  deepEqual(problems, []);
});

Deno.test("EngineVersions gives an engine its environment, LD_LIBRARY_PATH too", async () => {
  const { engines } = await look(['[ "$LD_LIBRARY_PATH" = /cuda ] && echo 1.2.3'], {
    env: { LD_LIBRARY_PATH: "/cuda" },
  });
  equal(engines[0]?.version, "1.2.3");
});

Deno.test("EngineVersions passes on the words of what does not work", async () => {
  const { engines, problems } = await look([
    'echo "Traceback:"; echo "ImportError: libcudart.so.13: cannot open"; exit 1',
    "echo hello",
    "exec /no/such/python",
  ]);
  deepEqual(engines, []);
  match(problems[0]?.detail ?? "", /ended with code 1: .*libcudart\.so\.13: cannot open/);
  match(problems[1]?.detail ?? "", /does not say its version: hello/);
  match(problems[2]?.detail ?? "", /ended with code 127: .*not found/);
  match(problems[2]?.remedy ?? "", /Correct its path/);
});

Deno.test("EngineVersions ends what hangs, with all that it started", async () => {
  const marker = `${4_000 + Deno.pid}`;
  const { problems } = await look([`sleep ${marker} & sleep ${marker}`], { secondsMax: 1 });
  match(problems[0]?.detail ?? "", /did not say its version within 1 s/);
  equal(await anyRuns(`sleep ${marker} `), false);
});

/** Whether any process of this machine has `words` in its command line. */
async function anyRuns(words: string): Promise<boolean> {
  const { stdout } = await new Deno.Command("/bin/sh", {
    args: ["-c", "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' '"],
  }).output();
  return new TextDecoder().decode(stdout).includes(words);
}

Deno.test("EngineVersions ends what it is asking when the agent stops, however it stops", async () => {
  const root = await Deno.makeTempDir();
  try {
    const path = join(root, "engine");
    const begun = join(root, "begun");
    const marker = `${8_000_000 + Deno.pid}`;
    await Deno.mkdir(begun);
    await Deno.writeTextFile(
      path,
      `#!/bin/sh\nsleep ${marker} & echo > ${begun}/here; sleep ${marker}\n`,
      { mode: 0o755 },
    );
    const stop = new AbortController();
    const versions = new EngineVersions({
      shim: SHIM,
      stateDirectory: root,
      engines: () => [{ name: "vllm", path, versionArgs: [], env: { PATH: "/usr/bin:/bin" } }],
      secondsMax: 60,
      onChange: () => {},
    });
    const watcher = Deno.watchFs(begun);
    const looking = versions.look(stop.signal);
    for await (const { kind } of watcher) if (kind === "create") break;
    // All that is done then is to close the probe's input, as the kernel does for a killed agent.
    stop.abort();
    await looking;
    equal(versions.survey.probed, false, "what was cut short says nothing of the engine");
    await eventually("its end", async () => !await anyRuns(`sleep ${marker} `));
  } finally {
    await Deno.remove(root, { recursive: true });
  }
});

Deno.test("EngineVersions is not waited for by what an engine leaves running", async () => {
  const { engines } = await look(["sleep 60 & echo 2.0.1"]);
  equal(engines[0]?.version, "2.0.1");
});

Deno.test("EngineVersions bounds what an engine prints, and not what it writes", async () => {
  const { engines } = await look([
    'head -c 100000000 /dev/zero > "$0.cache" && echo 3.1.4; rm "$0.cache"',
    "yes a warning | head -c 50000000; echo vLLM 0.19.2",
  ]);
  deepEqual(engines.map(({ version }) => version), ["3.1.4", "0.19.2"]);
});
