/**
 * What every launcher must do, as tests. The supervisor relies on each of these, and a launcher that
 * cannot keep one cannot keep engines.
 */
import { deepEqual, equal, match, notEqual, ok, rejects } from "node:assert/strict";
import { readTextIfExists } from "@heddle/common/atomic_file";
import { delay } from "@heddle/common/task";
import type { ProcessRef } from "../../core/shard/shard.ts";
import type { Launcher } from "./launcher.ts";

/** A launcher to be tried, and how to get another one as a restarted agent would. */
export interface Subject {
  readonly launcher: Launcher;
  /** As after a restart of the agent: the same engines, nothing remembered. */
  restarted(): Launcher;
  /** A fresh folder for one process. */
  directory(): Promise<string>;
  /** Resolves when what the launchers started has ended. */
  settled(): Promise<void>;
  /** Which of these processes live and are none of its. */
  strangers(pids: readonly number[]): Promise<ReadonlyMap<number, string>>;
}

interface Started {
  readonly process: ProcessRef;
  readonly directory: string;
}

const WAIT_MS_MAX = 15_000;
const POLL_MS = 20;

let count = 0;

/** Registers the contract's tests for one kind of launcher. */
export function launcherContract(kind: string, open: () => Promise<Subject & AsyncDisposable>) {
  const it = (name: string, work: (subject: Subject) => Promise<void>) =>
    Deno.test(`${kind}: ${name}`, async () => {
      await using subject = await open();
      await work(subject);
      await subject.settled();
    });
  environmentAndOutput(it);
  exits(it);
  signals(it);
  restarts(it);
  usage(it);
  strangers(it);
}

type It = (name: string, work: (subject: Subject) => Promise<void>) => void;

async function start(
  { launcher, directory }: Subject,
  script: string,
  env: Record<string, string> = {},
): Promise<Started> {
  const folder = await directory();
  const process = await launcher.start({
    name: "server",
    handle: `t${Deno.pid}x${++count}`,
    directory: folder,
    argv: ["/bin/sh", "-c", script],
    env: { PATH: "/usr/bin:/bin", ...env },
  });
  return { process, directory: folder };
}

function ended({ launcher }: { launcher: Launcher }, { process, directory }: Started) {
  return launcher.exit(process, directory, AbortSignal.timeout(WAIT_MS_MAX));
}

/** Waits for a line in the output: the process is then where the test wants it. */
async function said({ launcher }: Subject, { directory }: Started, words: string): Promise<string> {
  const signal = AbortSignal.timeout(WAIT_MS_MAX);
  while (true) {
    const text = await readTextIfExists(launcher.logFile(directory)) ?? "";
    if (text.includes(words)) return text;
    signal.throwIfAborted();
    await delay(POLL_MS, signal);
  }
}

/** Waits until nothing of the process is left. */
async function empty(launcher: Launcher, process: ProcessRef): Promise<void> {
  const signal = AbortSignal.timeout(WAIT_MS_MAX);
  while ((await launcher.members(process)).length > 0) {
    signal.throwIfAborted();
    await delay(POLL_MS, signal);
  }
}

function environmentAndOutput(it: It): void {
  it("gives a process exactly the environment it was given, LD_LIBRARY_PATH too", async (subject) => {
    const env = { LD_LIBRARY_PATH: "/opt/cuda", ODD: 'it\'s "$HOME"\n`x`', VLLM_API_KEY: "sk-x" };
    const started = await start(subject, "env -0 | tr '\\0' ';'; echo; echo done", env);
    const log = await said(subject, started, "done");
    for (const [name, value] of Object.entries(env)) ok(log.includes(`${name}=${value};`), name);
    const names = log.split(";").map((line) => line.split("=")[0]?.trim() ?? "");
    const foreign = names.filter((name) =>
      /^(?:DENO|HOME$|USER$|SSH|npm_|HEDDLE_(?!SHIM_RUN))/.test(name)
    );
    deepEqual(foreign, [], "nothing of the agent's own");
    equal((await ended(subject, started))?.code, 0);
  });
  it("keeps secrets out of arguments", async (subject) => {
    const started = await start(subject, "echo up; sleep 30", { VLLM_API_KEY: "sk-very-secret" });
    await said(subject, started, "up");
    const ps = await new Deno.Command("/bin/sh", {
      args: ["-c", "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' '"],
    }).output();
    ok(!new TextDecoder().decode(ps.stdout).includes("sk-very-secret"));
    await subject.launcher.signal(started.process, "SIGKILL");
    await ended(subject, started);
  });
  it("keeps what a process says on both its outputs", async (subject) => {
    const started = await start(subject, "echo out; echo err >&2; exit 3");
    await ended(subject, started);
    const log = await said(subject, started, "err");
    match(log, /^out$/m);
  });
  it("says how it went when the program is not there", async (subject) => {
    const directory = await subject.directory();
    const process = await subject.launcher.start({
      name: "server",
      handle: `t${Deno.pid}x${++count}`,
      directory,
      argv: ["/no/such/engine"],
      env: {},
    }).catch((error: unknown) => error);
    if (process instanceof Error) return;
    const started = { process: process as ProcessRef, directory };
    equal((await ended(subject, started))?.code, 127);
    match(await said(subject, started, "no/such"), /no\/such\/engine/);
  });
  it("refuses a program that is no absolute path", async (subject) => {
    const directory = await subject.directory();
    await rejects(
      subject.launcher.start({ name: "server", handle: "t1", directory, argv: ["sh"], env: {} }),
      /no absolute path/,
    );
  });
}

function exits(it: It): void {
  it("tells an exit code from a signal", async (subject) => {
    const three = await start(subject, "exit 3");
    deepEqual(await ended(subject, three), { code: 3, signal: "", outOfMemory: false });
    const like = await start(subject, "exit 137");
    deepEqual(await ended(subject, like), { code: 137, signal: "", outOfMemory: false });
    const killed = await start(subject, "kill -KILL $$");
    deepEqual(await ended(subject, killed), { code: 137, signal: "SIGKILL", outOfMemory: false });
    const crashed = await start(subject, "kill -SEGV $$");
    equal((await ended(subject, crashed))?.signal, "SIGSEGV");
  });
  it("ends what an engine left behind when the engine itself ends", async (subject) => {
    const started = await start(subject, "sleep 60 & echo up; exit 0");
    await said(subject, started, "up");
    equal((await ended(subject, started))?.code, 0);
    await empty(subject.launcher, started.process);
  });
  it("ends children that left the group, or knows of them", async (subject) => {
    const started = await start(
      subject,
      "setsid sleep 60 & echo child $!; echo up; sleep 0.2; exit 1",
    );
    const [, child = ""] = /^child (\d+)$/m.exec(await said(subject, started, "up")) ?? [];
    await ended(subject, started);
    const members = await subject.launcher.members(started.process);
    if (members.length === 0) {
      const { code } = await new Deno.Command("/bin/sh", { args: ["-c", `kill -0 ${child}`] })
        .output();
      notEqual(code, 0, "what is not known of is gone");
    } else {
      equal(await subject.launcher.signal(started.process, "SIGKILL"), "sent");
    }
    await empty(subject.launcher, started.process);
  });
}

function signals(it: It): void {
  it("sends SIGTERM to the engine alone, which then ends its workers itself", async (subject) => {
    const started = await start(
      subject,
      `sh -c 'trap "echo worker got it" TERM; echo worker up; while :; do sleep 0.05; done' & w=$!
       trap 'echo engine got it; kill -KILL $w; exit 0' TERM; wait; wait`,
    );
    await said(subject, started, "worker up");
    equal(await subject.launcher.signal(started.process, "SIGTERM"), "sent");
    equal((await ended(subject, started))?.code, 0);
    const log = await said(subject, started, "engine got it");
    ok(!log.includes("worker got it"), log);
  });
  it("kills whole what ignores SIGTERM", async (subject) => {
    const started = await start(subject, "trap '' TERM; sleep 60 & echo up; wait; sleep 60");
    await said(subject, started, "up");
    await subject.launcher.signal(started.process, "SIGTERM");
    ok((await subject.launcher.members(started.process)).length >= 2, "it goes on");
    await subject.launcher.signal(started.process, "SIGKILL");
    equal((await ended(subject, started))?.signal, "SIGKILL");
    await empty(subject.launcher, started.process);
  });
  it("says so when there is nothing to send a signal to", async (subject) => {
    const started = await start(subject, "exit 0");
    await ended(subject, started);
    await empty(subject.launcher, started.process);
    for (const signal of ["SIGTERM", "SIGKILL"] as const) {
      equal(await subject.launcher.signal(started.process, signal), "gone");
    }
  });
  it("never touches a process that only bears the same pid", async (subject) => {
    const stranger = await start(subject, "echo up; sleep 60");
    await said(subject, stranger, "up");
    const reused = { ...stranger.process, handle: "another", started: "1" };
    for (const signal of ["SIGTERM", "SIGKILL"] as const) {
      equal(await subject.launcher.signal(reused, signal), "gone");
    }
    deepEqual(await subject.launcher.members(reused), []);
    ok((await subject.launcher.members(stranger.process)).length > 0, "the stranger lives");
    await subject.launcher.signal(stranger.process, "SIGKILL");
    await ended(subject, stranger);
  });
}

function restarts(it: It): void {
  it("finds what an earlier agent started, watches and ends it", async (subject) => {
    const started = await start(subject, "echo up; sleep 60");
    await said(subject, started, "up");
    const launcher = subject.restarted();
    const live = await launcher.list();
    const found = live.find(({ handle }) => handle === started.process.handle);
    equal(found?.pid, started.process.pid);
    equal(found?.started, started.process.started);
    equal(found?.directory, started.directory);
    equal(found?.whole, true);
    const end = ended({ launcher }, started);
    await launcher.signal(started.process, "SIGTERM");
    equal((await end)?.signal, "SIGTERM");
    await empty(launcher, started.process);
    deepEqual(await launcher.list(), []);
  });
  it("has the record of what ended while no agent was there", async (subject) => {
    const started = await start(subject, "exit 7");
    await ended(subject, started);
    await subject.settled();
    equal((await ended({ launcher: subject.restarted() }, started))?.code, 7);
  });
  it("stops watching when told to, and the process goes on", async (subject) => {
    const started = await start(subject, "echo up; sleep 60");
    await said(subject, started, "up");
    const stop = new AbortController();
    const watch = subject.launcher.exit(started.process, started.directory, stop.signal);
    stop.abort();
    await rejects(watch);
    equal((await subject.launcher.list()).length, 1);
    await subject.launcher.signal(started.process, "SIGKILL");
    await ended(subject, started);
  });
}

function usage(it: It): void {
  it("measures what a process takes with its children, and nobody else's", async (subject) => {
    const busy = await start(
      subject,
      "(n=0; while [ $n -lt 200000 ]; do n=$((n+1)); done; echo worked; exec sleep 60) & wait",
    );
    const idle = await start(subject, "echo up; sleep 60");
    await said(subject, busy, "worked");
    await said(subject, idle, "up");
    const both = await subject.launcher.usage([busy.process, idle.process]);
    const [worked, slept] = [busy, idle].map(({ process }) => both.get(process.handle));
    ok((worked?.memoryBytes ?? 0) > 0 && (slept?.memoryBytes ?? 0) > 0);
    ok((worked?.cpuSeconds ?? 0) > (slept?.cpuSeconds ?? 1), "who works is told from who sleeps");
    const one = await subject.launcher.usage([idle.process]);
    deepEqual([...one.keys()], [idle.process.handle]);
    for (const started of [busy, idle]) {
      await subject.launcher.signal(started.process, "SIGKILL");
      await ended(subject, started);
      await empty(subject.launcher, started.process);
    }
    equal((await subject.launcher.usage([idle.process])).size, 0);
    equal((await subject.launcher.usage([])).size, 0);
  });
}

// A driver names pids alone, and what holds a GPU is often a worker that renamed itself, or a child's
// child: none of them may be taken for somebody else's.
function strangers(it: It): void {
  it("tells what it started, and all that came of it, from strangers", async (subject) => {
    const started = await start(
      subject,
      `sleep 40 & one=$!
       setsid env -i /bin/sleep 40 & two=$!
       (setsid env -i /bin/sh -c 'echo "#far $$#"; exec sleep 40' &)
       sleep 0.2; echo "#pids $$ $one $two#"; wait`,
    );
    const log = await said(subject, started, "#pids");
    const own = [...log.matchAll(/#(?:far|pids) ([\d ]+)#/g)]
      .flatMap(([, pids = ""]) => pids.split(" ").map(Number));
    equal(own.length, 4, log);
    // Whoever that is, we did not start it.
    const found = await subject.strangers([...own, 1, 999_999_999]);
    deepEqual([...found.keys()], [1], `${own.join(" ")} are its own`);
    ok((found.get(1) ?? "") !== "", "with its name");
    await subject.launcher.signal(started.process, "SIGKILL");
    await new Deno.Command("/bin/sh", { args: ["-c", `kill -KILL ${own.join(" ")}`] }).output();
    await ended(subject, started);
  });
}
