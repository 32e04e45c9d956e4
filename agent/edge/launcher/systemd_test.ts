/**
 * The systemd launcher on a real systemd, as root. It starts units of this machine, so it runs only
 * where it was asked to: on a node of the lab (`deno task lab systemd_launcher`), whose user for
 * engines HEDDLE_TEST_ENGINE_USER names.
 */
import { deepEqual, equal, match, ok, rejects } from "node:assert/strict";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { launcherContract, type Subject } from "./contract.ts";
import { readMemlock } from "./limits.ts";
import { probeAsUnit } from "./probe_unit.ts";
import { strangersAmong } from "./strangers.ts";
import { SystemdLauncher } from "./systemd.ts";

const SHIM = fileURLToPath(new URL("../../../bin/heddle-shim", import.meta.url));
const USER = Deno.env.get("HEDDLE_TEST_ENGINE_USER");
const WAIT_MS_MAX = 15_000;

async function open(): Promise<Subject & AsyncDisposable & { readonly root: string }> {
  // What systemd would take for a specifier, as folders of shards have it in their names.
  const root = await Deno.makeTempDir({ dir: "/var/lib", prefix: "heddle-%n%2F$x-" });
  const make = () =>
    new SystemdLauncher({ stateDirectory: root, user: USER ?? "nobody", shim: SHIM });
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
    strangers: (pids) => strangersAmong({ shim: SHIM, stateDirectory: root }, pids),
    settled: () => Promise.resolve(),
    async [Symbol.asyncDispose]() {
      await Deno.remove(root, { recursive: true });
    },
  };
}

if (USER === undefined) {
  Deno.test.ignore("systemd launcher: runs in the lab, on a real systemd", () => {});
} else {
  launcherContract("systemd launcher", open);
  beyondTheContract();
}

function beyondTheContract(): void {
  Deno.test("systemd launcher: a program gets its arguments as they are", async () => {
    await using subject = await open();
    const odd = [
      "$HOME",
      "${HOME}",
      "$$",
      "%n %%",
      "a;b",
      " ; ",
      'q"uote',
      "\\x41\\",
      "new\nline",
      "ü",
    ];
    const directory = await subject.directory();
    const process = await subject.launcher.start({
      name: "server",
      handle: `odd${Deno.pid}`,
      directory,
      argv: ["/bin/sh", "-c", 'printf "<%s>" "$@"; sleep 60', "sh", ...odd, ""],
      env: { PATH: "/usr/bin:/bin", HOME: "/somewhere" },
    });
    const log = subject.launcher.logFile(directory);
    const expected = [...odd, ""].map((word) => `<${word}>`).join("");
    const signal = AbortSignal.timeout(WAIT_MS_MAX);
    let text = "";
    while (text.length < expected.length && !signal.aborted) {
      text = await Deno.readTextFile(log);
    }
    equal(text, expected);
    await subject.launcher.signal(process, "SIGKILL");
    await subject.launcher.exit(process, directory, signal);
  });
  Deno.test("systemd launcher: a program may lie in a folder with a dollar", async () => {
    await using subject = await open();
    const folder = join("/opt", `$HOME-${Deno.pid}`);
    await Deno.mkdir(folder);
    await Deno.copyFile("/bin/echo", join(folder, "echo"));
    const directory = await subject.directory();
    const process = await subject.launcher.start({
      name: "server",
      handle: `dollar${Deno.pid}`,
      directory,
      argv: [join(folder, "echo"), "$HOME", "up"],
      env: { HOME: "/x" },
    });
    await subject.launcher.exit(process, directory, AbortSignal.timeout(WAIT_MS_MAX));
    equal(await Deno.readTextFile(subject.launcher.logFile(directory)), "$HOME up\n");
    await Deno.remove(folder, { recursive: true });
  });
  Deno.test("systemd launcher: says why a program cannot be started", async () => {
    await using subject = await open();
    const request = { name: "server", handle: `why${Deno.pid}`, env: {} };
    await rejects(
      subject.launcher.start({
        ...request,
        directory: await subject.directory(),
        argv: ["/no/such/engine"],
      }),
      /Failed to find executable \/no\/such\/engine: No such file/,
    );
    // There, and root may run it; but not the user that would have to.
    const folder = join("/opt", `only-root-${Deno.pid}`);
    await Deno.mkdir(folder, { mode: 0o700 });
    await Deno.copyFile("/bin/true", join(folder, "engine"));
    await rejects(
      subject.launcher.start({
        ...request,
        directory: await subject.directory(),
        argv: [join(folder, "engine")],
      }),
      /does not exist on this node, or the engines' user may not run it/,
    );
    await Deno.remove(folder, { recursive: true });
    const nobody = new SystemdLauncher({
      stateDirectory: subject.root,
      user: "no-such-user",
      shim: SHIM,
    });
    await rejects(
      nobody.start({ ...request, directory: await subject.directory(), argv: ["/bin/true"] }),
      /see that user no-such-user exists/,
    );
    deepEqual(await subject.launcher.list(), []);
  });
  Deno.test("systemd launcher: an engine runs as its user, in its home", async () => {
    await using subject = await open();
    const directory = await subject.directory();
    const process = await subject.launcher.start({
      name: "server",
      handle: `who${Deno.pid}`,
      directory,
      argv: ["/bin/sh", "-c", "id -un; pwd; touch here && rm here && echo may write"],
      env: { PATH: "/usr/bin:/bin" },
    });
    await subject.launcher.exit(process, directory, AbortSignal.timeout(WAIT_MS_MAX));
    const text = await Deno.readTextFile(subject.launcher.logFile(directory));
    deepEqual(text.trim().split("\n"), [USER, "/var/lib/heddle/engine-home", "may write"]);
  });
  Deno.test("systemd launcher: a unit that systemd has read again is what it was", async () => {
    await using subject = await open();
    const directory = await subject.directory();
    const odd = ["$HOME", "%n", "a;b", "; exit", 'q"', "\\", "new\nline"];
    const process = await subject.launcher.start({
      name: "server",
      handle: `again${Deno.pid}`,
      directory,
      argv: ["/bin/sh", "-c", "trap 'exit 9' TERM; sleep 60 & wait", "sh", ...odd],
      env: { PATH: "/usr/bin:/bin" },
    });
    for (const verb of ["daemon-reload", "daemon-reexec"]) {
      equal((await new Deno.Command("systemctl", { args: [verb] }).output()).code, 0);
    }
    const [found] = await subject.restarted().list();
    deepEqual([found?.pid, found?.directory], [process.pid, directory]);
    equal(await subject.launcher.signal(process, "SIGTERM"), "sent");
    const exit = await subject.launcher.exit(process, directory, AbortSignal.timeout(WAIT_MS_MAX));
    deepEqual(exit, { code: 9, signal: "", outOfMemory: false });
  });
  Deno.test("systemd launcher: an engine that writes its own record has not ended", async () => {
    await using subject = await open();
    const directory = await subject.directory();
    const forged = "heddle-exit-1\\nsuccess\\nexited\\n0\\n";
    const process = await subject.launcher.start({
      name: "server",
      handle: `forged${Deno.pid}`,
      directory,
      argv: [
        "/bin/sh",
        "-c",
        `printf '${forged}' >/run/heddle-engine-exit; echo up; sleep 0.5; exit 4`,
      ],
      env: { PATH: "/usr/bin:/bin" },
    });
    const exit = await subject.launcher.exit(process, directory, AbortSignal.timeout(WAIT_MS_MAX));
    deepEqual(exit, { code: 4, signal: "", outOfMemory: false });
  });
  Deno.test("systemd launcher: processes of one shard share /tmp, which nobody else sees", async () => {
    await using subject = await open();
    await using stranger = await open();
    const start = async ({ launcher, directory }: Subject, name: string, script: string) => {
      const folder = await directory();
      const process = await launcher.start({
        name,
        handle: `${name}${Deno.pid}`,
        directory: folder,
        argv: ["/bin/sh", "-c", script],
        env: { PATH: "/usr/bin:/bin" },
      });
      const exit = () => launcher.exit(process, folder, AbortSignal.timeout(WAIT_MS_MAX));
      return { process, exit };
    };
    // Waits for the answer of the other one.
    const wait = "while [ ! -e /tmp/answer ]; do sleep 0.05; done";
    const head = await start(subject, "head", `touch /tmp/socket; ${wait}; exit 3`);
    const look = "[ -e /tmp/socket ] || exit 9";
    const other = await start(stranger, "other", look);
    equal((await other.exit())?.code, 9);
    const retry = "for i in 1 2 3 4 5 6 7 8 9 10; do [ -e /tmp/socket ] && break; sleep 0.1; done";
    const server = await start(subject, "server", `${retry}; ${look}; touch /tmp/answer`);
    equal((await server.exit())?.code, 0);
    equal((await head.exit())?.code, 3);
    equal(await Deno.stat("/tmp/answer").then(() => true, () => false), false);
  });
  Deno.test("probeAsUnit() asks an engine for its version as the user that it runs as", async () => {
    await using subject = await open();
    const probe = (script: string, secondsMax = 20) =>
      probeAsUnit({
        path: "/bin/sh",
        versionArgs: ["-c", script],
        env: { LD_LIBRARY_PATH: "/cuda" },
        user: USER ?? "nobody",
        envFile: join(subject.root, "engine-0.env"),
        secondsMax,
        signal: new AbortController().signal,
      });
    match(
      await probe('echo "$(/usr/bin/id -un) $LD_LIBRARY_PATH"; echo late >&2; exit 3'),
      new RegExp(`^${USER} /cuda\n+late\n[^]*\n#exit 3\n$`),
    );
    match(await probe("exec /bin/sleep 60", 1), /\n#timeout\n$/);
    const flood = await probe("while :; do echo flood; done");
    ok(flood.length < 20_000 && /\n#exit \d+\n$/.test(flood));
    const missing = await probeAsUnit({
      path: "/no/such/engine",
      versionArgs: ["--version"],
      env: {},
      user: USER ?? "nobody",
      envFile: join(subject.root, "engine-1.env"),
      secondsMax: 20,
      signal: new AbortController().signal,
    });
    match(missing, /\n#exit 127\n$/);
  });
  Deno.test("systemd launcher: an engine may lock as much as systemd can give it", async () => {
    await using subject = await open();
    const directory = await subject.directory();
    const argv = ["/bin/sleep", "60"];
    const handle = `lock${Deno.pid}`;
    const process = await subject.launcher.start({
      name: "server",
      handle,
      directory,
      argv,
      env: {},
    });
    const memlockBytes = await readMemlock(SHIM, process.mainPid ?? process.pid);
    // A machine whose systemd may not raise limits gives what it has itself.
    const [ofPid1] = /(?<=^Max locked memory +\S+ +)\S+/m.exec(await limitsOfPid1()) ?? [];
    equal(memlockBytes, ofPid1 === "unlimited" ? Infinity : memlockBytes);
    ok(memlockBytes !== undefined && memlockBytes >= Number(ofPid1 === "unlimited" ? 0 : ofPid1));
    await subject.launcher.signal(process, "SIGKILL");
    await subject.launcher.exit(process, directory, AbortSignal.timeout(WAIT_MS_MAX));
  });
  Deno.test("systemd launcher: two agents do not see each other's engines", async () => {
    await using one = await open();
    await using other = await open();
    const directory = await one.directory();
    const process = await one.launcher.start({
      name: "server",
      handle: `mine${Deno.pid}`,
      directory,
      argv: ["/bin/sleep", "60"],
      env: {},
    });
    deepEqual(await other.launcher.list(), []);
    equal((await one.launcher.list()).length, 1);
    ok((await one.launcher.members(process)).includes(process.pid));
    await one.launcher.signal(process, "SIGKILL");
    await one.launcher.exit(process, directory, AbortSignal.timeout(WAIT_MS_MAX));
  });
}

async function limitsOfPid1(): Promise<string> {
  const { stdout } = await new Deno.Command("/bin/cat", { args: ["/proc/1/limits"] }).output();
  return new TextDecoder().decode(stdout);
}
