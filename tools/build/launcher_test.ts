import { deepEqual, equal, ok } from "node:assert/strict";
import { join } from "node:path";
import { ROOT } from "../repository.ts";
import { launcherText } from "./launcher.ts";
import { staleLaunchers } from "./launchers.ts";
import { readGrants } from "./permission_set.ts";
import { PROGRAMS } from "./program.ts";

/** Stands in for the runtime: prints its arguments and what it was given for a cache. */
const ECHO = `#!/bin/sh
printf '%s\\n' "$@" "DENO_DIR=\${DENO_DIR:-}"
`;

const CONFIG = JSON.stringify({
  permissions: Object.fromEntries(PROGRAMS.map(({ room }) => [room, {
    read: ["/etc/x", "./own"],
    write: ["/var/x"],
    env: ["A_*", "B$C"],
    run: ["./bin/heddle-shim", "/usr/bin/systemd-run", "/usr/bin/nvidia-smi"],
  }])),
});

Deno.test("the launchers of bin/ are what the template makes of deno.json", async () => {
  deepEqual([...(await staleLaunchers(ROOT)).keys()], [], "Run: deno task launchers");
});

/** Runs the release's launcher of `name` in a folder whose name needs quotes. */
async function launch(
  name: string,
  env: Readonly<Record<string, string>>,
  args: readonly string[] = ["--config", "a b"],
): Promise<{ flags: readonly string[]; root: string }> {
  const program = PROGRAMS.find((one) => one.name === name);
  ok(program);
  const folder = await Deno.makeTempDir({ prefix: "heddle launcher's $HOME " });
  try {
    const root = await Deno.realPath(folder);
    for (const sub of ["bin", "runtime", "elsewhere"]) await Deno.mkdir(join(root, sub));
    const text = launcherText(program, readGrants(CONFIG, program.room), "release");
    const launcher = join(root, "bin", name);
    await Deno.writeTextFile(launcher, text, { mode: 0o700 });
    await Deno.writeTextFile(join(root, "runtime/deno"), ECHO, { mode: 0o700 });
    // Through a link, as /usr/local/bin would have one.
    await Deno.symlink(launcher, join(root, "elsewhere/linked"));
    const output = await new Deno.Command(join(root, "elsewhere/linked"), {
      args: [...args],
      env: { PATH: "/usr/bin:/bin", ...env },
      clearEnv: true,
    }).output();
    const decoder = new TextDecoder();
    equal(output.code, 0, decoder.decode(output.stderr));
    const words = decoder.decode(output.stdout).trimEnd().split("\n");
    equal(words[0], "run");
    const entry = words.indexOf(`${root}/lib/${name}.mjs`);
    deepEqual(words.slice(entry + 1, -1), args);
    return { flags: [...words.slice(1, entry), ...words.slice(-1)], root };
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

/** The flags that begin with one of `names`. */
function named(flags: readonly string[], ...names: readonly string[]): readonly string[] {
  return flags.filter((flag) => names.some((name) => flag.startsWith(name)));
}

Deno.test("a release's launcher grants the set, and its paths follow the release", async () => {
  const { flags, root } = await launch("heddle-agent", {});
  deepEqual(named(flags, "--allow", "--deny"), [
    `--allow-env=A_*,B$C`,
    "--deny-import",
    `--allow-run=${root}/bin/heddle-shim,/usr/bin/systemd-run,/usr/bin/nvidia-smi`,
    `--allow-read=/etc/x,${root}/own`,
    "--allow-write=/var/x",
  ]);
  for (
    const flag of [
      "--no-config",
      "--no-lock",
      "--no-npm",
      "--no-prompt",
      "--no-remote",
      "--cached-only",
    ]
  ) ok(flags.includes(flag), flag);
});

Deno.test("HEDDLE_STATE, HEDDLE_READ and HEDDLE_NVIDIA_SMI replace what the set says", async () => {
  const state = { HEDDLE_STATE: "/s t" };
  deepEqual(named((await launch("heddle-agent", state)).flags, "--allow-read", "--allow-write"), [
    "--allow-read=/s t",
    "--allow-write=/s t",
  ]);
  const { flags, root } = await launch("heddle-agent", {
    ...state,
    HEDDLE_READ: "/a,/b",
    HEDDLE_NVIDIA_SMI: "/x/nvidia-smi",
  });
  deepEqual(named(flags, "--allow-read", "--allow-write", "--allow-run"), [
    `--allow-run=${root}/bin/heddle-shim,/usr/bin/systemd-run,/x/nvidia-smi`,
    "--allow-read=/s t,/a,/b",
    "--allow-write=/s t",
  ]);
  const sim = await launch("heddle-sim", state);
  deepEqual(named(sim.flags, "--allow-read"), [`--allow-read=/etc/x,${sim.root}/own`]);
});

Deno.test("an agent's command that runs once may use the paths that it names, and nothing else may", async () => {
  const allowed = async (args: readonly string[], env = {}) => {
    const { flags, root } = await launch("heddle-agent", env, args);
    return named(flags, "--allow-read", "--allow-write", "--allow-run")
      .map((flag) => flag.replaceAll(root, "ROOT"));
  };
  const run = "--allow-run=ROOT/bin/heddle-shim,/usr/bin/systemd-run,/usr/bin/nvidia-smi";
  const [read, write] = ["--allow-read=/etc/x,ROOT/own", "--allow-write=/var/x"];
  const cases: [args: readonly string[], flags: readonly string[]][] = [
    [["diagnose", "/l 1", "-", "--log-format=json", "l2"], [run, `${read},/l 1,l2`, write]],
    [["diagnose", "diagnose"], [run, `${read},diagnose`, write]],
    [["--diagnose=/a,,-,/b,", "/c"], [run, `${read},/a,/b`, write]],
    [["--diagnose", "/a,/b"], [run, `${read},/a,/b`, write]],
    [["inventory", "--capture", "/c c"], [run, `${read},/c c`, `${write},/c c`]],
    [["--inventory=json", "--replay=/r"], [run, `${read},/r`, write]],
    [["inventory", "--sysfs", "/s", "--nvidia-smi=/x/smi"], [`${run},/x/smi`, `${read},/s`, write]],
    // Deno would take these for everything, or for two.
    [["inventory", "--capture", "", "--replay=", "--nvidia-smi"], [run, read, write]],
    [["diagnose", "", "/a,/etc"], [run, read, write]],
    [["inventory", "--nvidia-smi", "none", "/a"], [run, read, write]],
    // The agent that runs for long.
    [["--capture", "/c", "--replay", "/r", "--nvidia-smi", "/x"], [run, read, write]],
    [["--node", "--inventory", "--nvidia-smi=/x", "--capture=/c"], [run, read, write]],
    [["--config", "diagnose", "/a"], [run, read, write]],
  ];
  for (const [args, flags] of cases) deepEqual(await allowed(args), flags, args.join(" "));
  const env = { HEDDLE_STATE: "/s", HEDDLE_NVIDIA_SMI: "/n" };
  deepEqual(await allowed(["inventory", "--capture=/c", "--nvidia-smi", "/m"], env), [
    "--allow-run=ROOT/bin/heddle-shim,/usr/bin/systemd-run,/n,/m",
    "--allow-read=/s,/c",
    "--allow-write=/s,/c",
  ]);
});

Deno.test("ctl may read the configuration that it is told of, or the user's, or the usual", async () => {
  const usual = await launch("heddle", {});
  deepEqual(named(usual.flags, "--allow-read"), [`--allow-read=/etc/x,${usual.root}/own`]);
  const told = await launch("heddle", { HEDDLE_CTL_CONFIG: "/c d/config.yaml" });
  deepEqual(named(told.flags, "--allow-read"), ["--allow-read=/c d"]);
  const token = await launch("heddle", {
    HEDDLE_CTL_CONFIG: "/c d/config.yaml",
    HEDDLE_TOKEN_FILE: "/run/t",
  });
  deepEqual(named(token.flags, "--allow-read"), ["--allow-read=/c d,/run/t"]);
  const home = await Deno.makeTempDir();
  try {
    await Deno.mkdir(join(home, "heddle"));
    const user = await launch("heddle", { XDG_CONFIG_HOME: home });
    deepEqual(named(user.flags, "--allow-read"), [
      `--allow-read=${home}/heddle,/etc/x,${user.root}/own`,
    ]);
  } finally {
    await Deno.remove(home, { recursive: true });
  }
});

Deno.test("where there is no home the runtime is kept from looking for one", async () => {
  equal((await launch("heddle-router", {})).flags.at(-1), "DENO_DIR=/dev/null/deno");
  equal((await launch("heddle-router", { HOME: "/h" })).flags.at(-1), "DENO_DIR=");
  equal((await launch("heddle-router", { DENO_DIR: "/d" })).flags.at(-1), "DENO_DIR=/d");
});
