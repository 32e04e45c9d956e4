/** The scripts under a real /bin/sh: dash where it is that, and dash by name where it is there. */
import { deepEqual, equal, match, ok, throws } from "node:assert/strict";
import { createHash } from "node:crypto";
import { join } from "node:path";
import { type Artifacts, attachScript, parseArtifact, type ScriptKind } from "./script.ts";

const AGENT = '#!/bin/sh\necho "agent $*" >>"$SEEN"\n';
const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");
/** So long a shell may take on a machine without time to spare. */
const LIMIT_MS = 30_000;

interface Box extends AsyncDisposable {
  readonly folder: string;
  readonly url: string;
  /** What the agent wrote, once it did. */
  seen(): Promise<string>;
  run(
    kind: ScriptKind,
    options?: {
      readonly args?: readonly string[];
      readonly env?: Readonly<Record<string, string>>;
      readonly artifacts?: Artifacts;
    },
  ): Promise<{ readonly code: number; readonly stdout: string; readonly stderr: string }>;
}

/** A machine of which `uname -m` says `arch`, with a server that has the agent at /x64 and /arm64. */
async function box(arch = "x86_64"): Promise<Box> {
  const folder = await Deno.makeTempDir({ prefix: "heddle script ' " });
  const asked: string[] = [];
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, (request) => {
    const { pathname } = new URL(request.url);
    asked.push(pathname);
    if (pathname === "/gone") return new Response("not here", { status: 404 });
    return new Response(`${AGENT}# ${pathname}\n`);
  });
  await Deno.mkdir(join(folder, "bin"));
  await Deno.writeTextFile(join(folder, "bin/uname"), `#!/bin/sh\necho ${arch}\n`, { mode: 0o755 });
  const seen = join(folder, "seen");
  const shell = await Deno.stat("/bin/dash").then(() => "/bin/dash", () => "/bin/sh");
  return {
    folder,
    url: `http://127.0.0.1:${server.addr.port}`,
    async seen() {
      const deadline = performance.now() + LIMIT_MS;
      for (;;) {
        const text = await Deno.readTextFile(seen).catch(() => "");
        if (text !== "" || performance.now() > deadline) return text;
        await new Promise((tick) => setTimeout(tick, 20));
      }
    },
    async run(kind, { args = [], env = {}, artifacts = {} } = {}) {
      const script = join(folder, `${kind}.sh`);
      await Deno.writeTextFile(script, attachScript(kind, "9.9", artifacts));
      const { code, stdout, stderr } = await new Deno.Command(shell, {
        args: [script, ...args],
        clearEnv: true,
        env: {
          PATH: `${join(folder, "bin")}:/usr/bin:/bin`,
          TMPDIR: folder,
          SEEN: seen,
          ...env,
        },
        stdin: "null",
        stdout: "piped",
        stderr: "piped",
        signal: AbortSignal.timeout(LIMIT_MS),
      }).output();
      const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
      return { code, stdout: text(stdout), stderr: text(stderr) };
    },
    async [Symbol.asyncDispose]() {
      await server.shutdown();
      await Deno.remove(folder, { recursive: true });
    },
  };
}

const published = (url: string): Artifacts => ({
  x64: { url: `${url}/x64`, sha256: sha256(`${AGENT}# /x64\n`) },
  arm64: { url: `${url}/arm64`, sha256: sha256(`${AGENT}# /arm64\n`) },
});

/** An engine that waits for the agent beside it, then prints its arguments, one a line. */
const ENGINE = [
  "sh",
  "-c",
  'while [ ! -e "$SEEN" ]; do sleep 0.1; done; printf "<%s>\\n" "$@"',
  "engine",
];
/** One that lives for as long as it takes to find out what is wrong with the agent. */
const LASTING = ["sh", "-c", "sleep 2; echo up"];
const AWKWARD = [
  "a b",
  "",
  "two\nlines\n",
  `it's`,
  'say "x"',
  "$HOME `id`",
  "*",
  "\\n",
  "--flag=a b",
  "-n",
];

Deno.test("the wrapper starts the engine with its own arguments untouched", async () => {
  await using machine = await box();
  const artifacts = published(machine.url);
  const { code, stdout } = await machine.run("wrapper", {
    args: [...ENGINE, ...AWKWARD],
    artifacts,
  });
  equal(code, 0);
  deepEqual(stdout, AWKWARD.map((word) => `<${word}>\n`).join(""));
  match(await machine.seen(), /^agent attach\n/);
});

Deno.test("the wrapper's engine takes the shell's place, and its exit code is the wrapper's", async () => {
  await using machine = await box();
  const { code } = await machine.run("wrapper", { args: ["sh", "-c", "exit 37"] });
  equal(code, 37);
});

Deno.test("the wrapper keeps the join token from the engine, and gives it to the agent", async () => {
  await using machine = await box();
  const agent = '#!/bin/sh\necho "token ${HEDDLE_JOIN_TOKEN:-none}" >"$SEEN"\n';
  await Deno.writeTextFile(join(machine.folder, "agent"), agent);
  const { stdout } = await machine.run("wrapper", {
    args: ["sh", "-c", 'while [ ! -e "$SEEN" ]; do sleep 0.1; done; env'],
    env: {
      HEDDLE_JOIN_TOKEN: "a-secret",
      HEDDLE_ENGINE_ID: "e1",
      HEDDLE_AGENT_BINARY_URL: `file://${encodeURI(join(machine.folder, "agent"))}`,
      HEDDLE_AGENT_BINARY_SHA256: sha256(agent),
    },
  });
  match(await machine.seen(), /^token a-secret\n/);
  ok(stdout.includes("HEDDLE_ENGINE_ID=e1"));
  ok(!stdout.includes("a-secret"));
});

Deno.test("the wrapper's engine starts while the agent is still fetched", async () => {
  await using machine = await box();
  // Nobody answers there; the download would take its time.
  using silent = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const port = "port" in silent.addr ? silent.addr.port : 0;
  // Its output ends with whatever was started: what is fetched is given up with the engine.
  const { code, stdout } = await machine.run("wrapper", {
    args: ["echo", "up"],
    env: {
      HEDDLE_AGENT_BINARY_URL: `http://127.0.0.1:${port}/x`,
      HEDDLE_AGENT_BINARY_SHA256: sha256(AGENT),
    },
  });
  equal(code, 0);
  equal(stdout, "up\n");
});

Deno.test("the wrapper runs the engine whatever goes wrong with the agent", async () => {
  await using machine = await box();
  const wrong = { x64: { url: `${machine.url}/x64`, sha256: sha256("something else") } };
  const gone = { x64: { url: `${machine.url}/gone`, sha256: sha256(AGENT) } };
  for (
    const [artifacts, words] of [[wrong, /is not what it should be/], [gone, /cannot fetch/], [
      {},
      /no build of Heddle 9.9 for x64 was published/,
    ]] as const
  ) {
    const { code, stdout, stderr } = await machine.run("wrapper", {
      args: LASTING,
      artifacts,
    });
    deepEqual([code, stdout], [0, "up\n"]);
    match(stderr, words);
    match(stderr, /the engine runs without Heddle/);
  }
  equal(await Deno.readTextFile(join(machine.folder, "seen")).catch(() => ""), "");
});

Deno.test("the sidecar fails loudly", async () => {
  await using machine = await box();
  const wrong = { x64: { url: `${machine.url}/x64`, sha256: sha256("something else") } };
  const { code, stderr } = await machine.run("sidecar", { artifacts: wrong });
  equal(code, 1);
  match(stderr, /its SHA-256 is [0-9a-f]{64}, want [0-9a-f]{64}/);
  equal((await machine.run("sidecar", {})).code, 1);
});

Deno.test("the sidecar takes the build for its machine, and no other", async () => {
  for (const [arch, path] of [["x86_64", "/x64"], ["aarch64", "/arm64"]] as const) {
    await using machine = await box(arch);
    const { code } = await machine.run("sidecar", { artifacts: published(machine.url) });
    equal(code, 0);
    match(await machine.seen(), /^agent attach\n$/);
    const agents = [...Deno.readDirSync(machine.folder)].filter(({ name }) =>
      name.startsWith("heddle-agent.")
    );
    const [folder] = agents;
    match(
      await Deno.readTextFile(join(machine.folder, folder?.name ?? "", "heddle-agent")),
      new RegExp(`# ${path}$`, "m"),
    );
  }
  await using other = await box("riscv64");
  const { code, stderr } = await other.run("sidecar", { artifacts: published(other.url) });
  equal(code, 1);
  match(stderr, /there is no agent for this machine: riscv64/);
});

Deno.test("HEDDLE_AGENT_BINARY_URL is fetched instead, and checked by what is known of it", async () => {
  await using machine = await box();
  const artifacts = published("http://127.0.0.1:1");
  const mirrored = { HEDDLE_AGENT_BINARY_URL: `${machine.url}/x64` };
  equal((await machine.run("sidecar", { artifacts, env: mirrored })).code, 0);
  const own = { HEDDLE_AGENT_BINARY_URL: `${machine.url}/own` };
  const sum = sha256(`${AGENT}# /own\n`);
  match((await machine.run("sidecar", { artifacts, env: own })).stderr, /is not what it should be/);
  match((await machine.run("sidecar", { env: own })).stderr, /there is no checksum/);
  const given = { ...own, HEDDLE_AGENT_BINARY_SHA256: sum.toUpperCase() };
  equal((await machine.run("sidecar", { artifacts, env: given })).code, 0);
});

Deno.test("the prelude starts the agent and ends", async () => {
  await using machine = await box();
  const { code, stderr } = await machine.run("prelude", { artifacts: published(machine.url) });
  deepEqual([code, stderr], [0, ""]);
  match(await machine.seen(), /^agent attach\n/);
});

Deno.test("the prelude neither waits for a download nor fails with it", async () => {
  await using machine = await box();
  const none = await machine.run("prelude");
  equal(none.code, 0);
  match(none.stderr, /no build of Heddle 9.9 for x64 was published.*\nheddle: nothing of Heddle/);
  // Nobody answers there before the prelude has ended.
  using silent = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const port = "port" in silent.addr ? silent.addr.port : 0;
  const script = join(machine.folder, "prelude.sh");
  const TMPDIR = await Deno.makeTempDir();
  const ended = await new Deno.Command("/bin/sh", {
    args: ["-ec", `sh "$0" 2>/dev/null; echo started`, script],
    env: {
      HEDDLE_AGENT_BINARY_URL: `http://127.0.0.1:${port}/x`,
      HEDDLE_AGENT_BINARY_SHA256: sha256(AGENT),
      TMPDIR,
    },
    stdout: "piped",
    stderr: "null",
    signal: AbortSignal.timeout(LIMIT_MS),
  }).output();
  equal(new TextDecoder().decode(ended.stdout), "started\n");
  (await silent.accept()).close();
  // It clears away what it made, and then nothing of it runs.
  const deadline = performance.now() + LIMIT_MS;
  while ([...Deno.readDirSync(TMPDIR)].length > 0 && performance.now() < deadline) {
    await new Promise((tick) => setTimeout(tick, 20));
  }
  await Deno.remove(TMPDIR);
});

Deno.test("wget does where there is no curl, shasum where there is no sha256sum, and neither is said", async () => {
  await using machine = await box();
  const artifacts = published(machine.url);
  const PATH = join(machine.folder, "few");
  await Deno.mkdir(PATH);
  const tools = ["cat", "chmod", "mktemp", "rm", "sleep", "tr"];
  for (const name of tools) await Deno.symlink(await whichOf(name), join(PATH, name));
  const put = (name: string, body: string) =>
    Deno.writeTextFile(join(PATH, name), `#!/bin/sh\n${body}\n`, { mode: 0o755 });
  await put("uname", "echo x86_64");
  const run = async () => (await machine.run("sidecar", { artifacts, env: { PATH } })).stderr;
  match(await run(), /there is neither curl nor wget to fetch http/);
  await put(
    "wget",
    `while [ "$1" != -O ]; do shift; done; exec '${await whichOf("curl")}' -sfo "$2" "$3"`,
  );
  match(await run(), /there is no sha256sum to check http/);
  await put("shasum", `[ "$1 $2" = "-a 256" ] && exec '${await whichOf("sha256sum")}' "$3"`);
  equal(await run(), "");
  match(await machine.seen(), /^agent attach\n$/);
});

async function whichOf(name: string): Promise<string> {
  const { stdout } = await new Deno.Command("/bin/sh", { args: ["-c", `command -v ${name}`] })
    .output();
  return new TextDecoder().decode(stdout).trim();
}

Deno.test("a build that was not published says so, and names no other's", async () => {
  await using machine = await box();
  const { code, stderr } = await machine.run("sidecar");
  equal(code, 1);
  match(stderr, /no build of Heddle 9.9 for x64 was published: set HEDDLE_AGENT_BINARY_URL/);
  match(attachScript("sidecar", "9.9", {}), /^heddle_x64_url=''$/m);
  const only = { arm64: { url: `${machine.url}/arm64`, sha256: sha256(AGENT) } };
  equal((await machine.run("sidecar", { artifacts: only })).code, 1);
});

Deno.test("parseArtifact() wants a checksum, and nothing that a shell could read otherwise", () => {
  const sum = sha256("x");
  deepEqual(parseArtifact(`https://h/a?b=1#sha256=${sum.toUpperCase()}`), {
    url: "https://h/a?b=1",
    sha256: sum,
  });
  for (
    const bad of [
      "https://h/a",
      `https://h/a#sha256=${sum}0`,
      `https://h/'a#sha256=${sum}`,
      `a b#sha256=${sum}`,
    ]
  ) {
    throws(() => parseArtifact(bad), /want its URL with its checksum/);
  }
  ok(attachScript("wrapper", "1'2", {}).includes(`heddle_version='1'\\''2'`));
});
