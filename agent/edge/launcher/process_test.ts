import { deepEqual, equal, match, ok, rejects } from "node:assert/strict";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { eventually } from "../../eventually_fake.ts";
import { launcherContract, type Subject } from "./contract.ts";
import { ProcessLauncher } from "./process.ts";
import { callShim, readBootId } from "./shim.ts";
import { strangersAmong } from "./strangers.ts";

const SHIM = fileURLToPath(new URL("../../../bin/heddle-shim", import.meta.url));

async function open(): Promise<Subject & AsyncDisposable & { readonly root: string }> {
  const root = await Deno.makeTempDir({ prefix: "heddle launcher " });
  const launchers: ProcessLauncher[] = [];
  const make = () => {
    const launcher = new ProcessLauncher({ shim: SHIM, stateDirectory: root });
    launchers.push(launcher);
    return launcher;
  };
  // So that not all that this very process began is known as the asker's own.
  const asker = join(root, "heddle-asker");
  await Deno.writeTextFile(asker, `#!/bin/sh\n"${SHIM}" "$@"\nexit $?\n`, { mode: 0o755 });
  let count = 0;
  return {
    root,
    launcher: make(),
    restarted: make,
    async directory() {
      const folder = join(root, `run-${++count}`);
      await Deno.mkdir(folder, { mode: 0o700 });
      return folder;
    },
    strangers: (pids) => strangersAmong({ shim: asker, stateDirectory: root }, pids),
    settled: async () => void await Promise.all(launchers.map((each) => each.childrenEnded())),
    async [Symbol.asyncDispose]() {
      await Deno.remove(root, { recursive: true });
    },
  };
}

launcherContract("process launcher", open);

async function started(subject: Subject, script: string, handle: string) {
  const directory = await subject.directory();
  const process = await subject.launcher.start({
    name: "server",
    handle,
    directory,
    argv: ["/bin/sh", "-c", script],
    env: { PATH: "/usr/bin:/bin" },
  });
  return { process, directory };
}

Deno.test("an engine whose shim was killed is found as an orphan, and ended", async () => {
  await using subject = await open();
  const { process, directory } = await started(subject, "sleep 60", "orphaned");
  const kill = await new Deno.Command("/bin/sh", { args: ["-c", `kill -KILL ${process.pid}`] })
    .output();
  equal(kill.code, 0);
  const exit = await subject.launcher.exit(process, directory, AbortSignal.timeout(15_000));
  equal(exit, undefined, "it left no record");
  const orphans = await subject.launcher.list();
  ok(orphans.length > 0 && orphans.every(({ whole, handle }) => !whole && handle === "orphaned"));
  equal(await subject.launcher.signal(process, "SIGKILL"), "sent");
  await eventually(
    "nothing is left",
    async () => (await subject.launcher.members(process)).length === 0,
  );
  await subject.settled();
});

Deno.test("a log is bounded also while no agent runs, and its engine notices nothing", async () => {
  await using subject = await open();
  const { process, directory } = await started(
    subject,
    `trap 'echo "#signal"' PIPE XFSZ
     while :; do echo "still here"; sleep 0.05; done`,
    "talkative",
  );
  const log = subject.launcher.logFile(directory);
  await eventually("it speaks", async () => (await Deno.stat(log)).size > 0);
  // What an engine would have written in a night.
  await Deno.truncate(log, 200 * 1024 * 1024);
  await eventually("the log is cut", async () => (await Deno.stat(log)).size < 2 ** 20);
  equal((await Deno.stat(`${log}.old`)).size, 4 * 1024 * 1024);
  await eventually("it goes on", async () => (await Deno.readTextFile(log)).includes("still"));
  ok(!(await Deno.readTextFile(log)).includes("#signal"));
  await subject.launcher.signal(process, "SIGKILL");
});

Deno.test("keep-logs cuts what is too long, and ends when there are no runs left", async () => {
  const root = await Deno.makeTempDir({ prefix: "heddle logs " });
  try {
    const run = join(root, "s-m", "run-1");
    await Deno.mkdir(run, { recursive: true });
    await Deno.writeTextFile(join(run, "log"), "x".repeat(5_000));
    await Deno.writeTextFile(join(run, "engine"), "x".repeat(5_000));
    const keeping = callShim(SHIM, ["keep-logs", root, "4096"]);
    await eventually("it is cut", async () => (await Deno.stat(join(run, "log"))).size === 0);
    equal((await Deno.readTextFile(join(run, "log.old"))).length, 5_000);
    equal((await Deno.stat(join(run, "engine"))).size, 5_000, "no log");
    await Deno.remove(run, { recursive: true });
    await keeping;
    await rejects(callShim(SHIM, ["keep-logs", root]), /usage: keep-logs/);
  } finally {
    await Deno.remove(root, { recursive: true });
  }
});

Deno.test("two agents on one machine do not see each other's engines", async () => {
  await using one = await open();
  await using other = await open();
  const { process, directory } = await started(one, "sleep 60", "mine");
  deepEqual(await other.launcher.list(), []);
  equal((await one.launcher.list()).length, 1);
  await one.launcher.signal(process, "SIGKILL");
  await one.launcher.exit(process, directory, AbortSignal.timeout(15_000));
  await one.settled();
});

Deno.test("the files of a process are for its owner alone", async () => {
  await using subject = await open();
  const { process, directory } = await started(subject, "exit 0", "private");
  await subject.launcher.exit(process, directory, AbortSignal.timeout(15_000));
  await subject.settled();
  for await (const { name } of Deno.readDir(directory)) {
    const { mode } = await Deno.stat(join(directory, name));
    equal((mode ?? 0) & 0o077, 0, name);
  }
});

Deno.test("the shim takes nothing from the environment it is called with", async () => {
  await using subject = await open();
  const directory = await subject.directory();
  await Deno.writeTextFile(join(directory, "env"), "export ONLY=1\n");
  const child = new Deno.Command(SHIM, {
    args: ["run", "inherit", directory, "--", "/usr/bin/env"],
    env: { SECRET_OF_AGENT: "x", LD_PRELOAD: "", HEDDLE_SHIM_CLEAN: "1" },
    detached: true,
    stdout: "null",
    stderr: "null",
  }).spawn();
  await child.status;
  const log = await Deno.readTextFile(join(directory, "log"));
  const names = log.trim().split("\n").map((line) => line.split("=")[0]).sort();
  deepEqual(names, ["HEDDLE_SHIM_RUN", "ONLY", "PWD"]);
});

Deno.test("the shim refuses what could reach beyond our processes", async () => {
  const wrong: readonly string[][] = [
    ["signal", "n1", "-1", "KILL", "group"],
    ["signal", "n1", "1; reboot", "KILL", "group"],
    ["signal", "../x", "1", "KILL", "group"],
    ["signal", "n1", "1", "KILL", "everything"],
    ["run", "n1", "/tmp", "sh"],
    ["reboot"],
    [],
  ];
  for (const args of wrong) {
    await rejects(callShim(SHIM, args), /heddle-shim/, args.join(" "));
  }
  equal((await callShim(SHIM, ["signal", "n1", "1", "KILL", "group"])).code, 3);
  equal((await callShim(SHIM, ["signal", "n1", String(Deno.pid), "TERM", "leader"])).code, 3);
});

const HAS_PS =
  (await new Deno.Command("/bin/sh", { args: ["-c", "ps -A -o pgid="] }).output()).success;

Deno.test("the shim works without /proc, by ps alone", { ignore: !HAS_PS }, async () => {
  await using subject = await open();
  const { process, directory } = await started(subject, "echo up; sleep 60", "noproc");
  const ps = async (...args: string[]) => {
    const output = await new Deno.Command(SHIM, {
      args,
      env: { HEDDLE_SHIM_PROC: "/nowhere" },
    }).output();
    return { code: output.code, text: new TextDecoder().decode(output.stdout) };
  };
  const found = await ps("find", subject.root);
  match(found.text, new RegExp(`^noproc ${process.pid} .* shim ${directory}$`, "m"));
  const members = await ps("members", "noproc", String(process.pid));
  match(members.text, new RegExp(`^${process.pid} .* shim `, "m"));
  match(members.text, new RegExp(`^${process.mainPid} .* engine `, "m"));
  equal((await ps("signal", "wrong", String(process.pid), "TERM", "leader")).code, 3);
  equal((await ps("signal", "noproc", String(process.pid), "KILL", "group")).code, 0);
  const exit = await subject.launcher.exit(process, directory, AbortSignal.timeout(15_000));
  equal(exit?.signal, "SIGKILL");
  await subject.settled();
});

Deno.test("readBootId() names this start of the machine", async () => {
  match(await readBootId(SHIM), /^[0-9a-f-]{36}$/);
  equal(await readBootId(SHIM), await readBootId(SHIM));
});
