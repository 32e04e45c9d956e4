/**
 * Releases of both forms, held to one suite: they are complete in themselves, say their version,
 * judge configurations, grant what the sets in deno.json grant, and serve.
 */
import { deepEqual, equal, match, notDeepEqual, ok } from "node:assert/strict";
import { join } from "node:path";
import { VERSION } from "@heddle/common/version";
import { differences, readEmbedded } from "../../tools/build/embedded.ts";
import { readGrants, settle } from "../../tools/build/permission_set.ts";
import { PROGRAMS } from "../../tools/build/program.ts";
import { findByArgument } from "../../tools/up/processes/find_process.ts";
import { build, buildRelease, type BuiltRelease } from "./built_release.ts";
import { Heddle, reserve, ROOT, runCommand } from "./heddle.ts";
import { demandRefused, probe } from "./permission_probe.ts";
import { permissionQueries } from "./permission_queries.ts";

type Step = readonly [name: string, run: (release: BuiltRelease) => Promise<void>];

/** What any release must do. */
const RUNNING: readonly Step[] = [
  ["its programs say their version", sayVersion],
  ["its programs judge configurations", judgeConfigurations],
  ["its programs read nothing outside of their folders", readNothingOutside],
  ["it serves a request", serveRequest],
];

Deno.test("a release of bundles", async (t) => {
  await using release = await buildRelease("bundle");
  await t.step("its checksums hold", () => checkSums(release));
  for (const [name, run] of RUNNING) await t.step(name, () => run(release));
  for (const program of PROGRAMS) {
    await t.step(`${program.room} may do nothing beyond its permission set`, async () => {
      demandRefused(await probe(program, { launchers: { kind: "release", dist: release.dist } }));
    });
    await t.step(
      `${program.room} is granted what it is in the repository`,
      () => compareGrants(program, release),
    );
  }
  await t.step("a second build, elsewhere, makes the same bytes", () => buildAgain(release));
  await t.step("for the other architecture only the runtime differs", () => buildOther(release));
});

Deno.test("a release of executables", async (t) => {
  await using release = await buildRelease("compile");
  await t.step("its checksums hold", () => checkSums(release));
  await t.step("its executables grant what the sets say", () => compareEmbedded(release));
  for (const [name, run] of RUNNING) {
    await t.step({
      name: release.unrunnable === undefined ? name : `${name} (skipped: ${release.unrunnable})`,
      ignore: release.unrunnable !== undefined,
      fn: () => run(release),
    });
  }
});

Deno.test("build replaces a release and nothing else", async () => {
  const folder = await Deno.makeTempDir({ prefix: "heddle-dist-" });
  try {
    await Deno.writeTextFile(join(folder, "thesis.txt"), "three years");
    for (const out of [folder, join(folder, "thesis.txt")]) {
      const result = await runCommand(Deno.execPath(), [
        "run",
        "-P=tools",
        "--quiet",
        "--config",
        join(ROOT, "deno.json"),
        join(ROOT, "tools/build/main.ts"),
        "--out",
        out,
      ]);
      equal(result.code, 1);
      match(result.stderr, /^Cannot write to \S+: it (is not a folder|holds something .*)\n$/);
    }
    deepEqual([...Deno.readDirSync(folder)].map(({ name }) => name), ["thesis.txt"]);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

/** Runs a program of the release from a folder whose configuration is broken. */
function start(release: BuiltRelease, name: string, args: readonly string[]) {
  return runCommand("/bin/sh", ["-c", 'cd "$0" && exec "$@"', release.state, ...[
    join(release.dist, "bin", name),
    ...args,
  ]], { HEDDLE_STATE: release.state });
}

async function checkSums(release: BuiltRelease): Promise<void> {
  const check = 'cd "$0" && sha256sum --check --strict --quiet SHA256SUMS && ' +
    'test "$(wc -l <SHA256SUMS)" = "$(find . -type f ! -name SHA256SUMS | wc -l)"';
  const result = await runCommand("/bin/sh", ["-c", check, release.dist]);
  equal(result.code, 0, result.stdout + result.stderr);
  const about = JSON.parse(await Deno.readTextFile(join(release.dist, "release.json")));
  deepEqual([about.version, about.arch, about.form], [VERSION, Deno.build.arch, release.form]);
}

async function sayVersion(release: BuiltRelease): Promise<void> {
  for (const { name } of PROGRAMS) {
    const result = await start(release, name, ["--version"]);
    equal(result.code, 0, result.stderr);
    match(result.stdout, new RegExp(`^(\\S+ )?${RegExp.escape(VERSION)}\n$`), name);
    equal(result.stderr, "");
  }
}

async function judgeConfigurations(release: BuiltRelease): Promise<void> {
  const tls = "tls: {certificate_file: /c, key_file: /k, ca_file: /a}\n";
  const good = {
    control: `cluster: x\n${tls}`,
    router: `control: {urls: ["http://127.0.0.1:7443"]}\n`,
    agent: `control: ["http://127.0.0.1:7443"]\n`,
  };
  for (const [room, text] of Object.entries(good)) {
    const file = join(release.state, `${room}.yaml`);
    await Deno.writeTextFile(file, text);
    const accepted = await start(release, `heddle-${room}`, ["--check-config", file]);
    equal(accepted.code, 0, accepted.stderr);
    equal(accepted.stdout, `${file}: ok\n`);
    await Deno.writeTextFile(file, `${text}colour: blue\n`);
    const refused = await start(release, `heddle-${room}`, ["--check-config", file]);
    equal(refused.code, 2, refused.stdout);
    match(refused.stderr, new RegExp(`${room}\\.yaml:\\d+:1: colour: unknown key\n$`));
  }
}

async function readNothingOutside(release: BuiltRelease): Promise<void> {
  for (const room of ["control", "router", "agent"]) {
    const result = await start(release, `heddle-${room}`, ["--check-config", "/etc/passwd"]);
    equal(result.code, 2, result.stdout);
    match(result.stderr, /Cannot read \/etc\/passwd: .*permissions do not include it/);
  }
}

async function serveRequest(release: BuiltRelease): Promise<void> {
  await using place = await reserve();
  const state = join(release.state, "up");
  // Within the one folder that executables may read.
  const catalog = join(release.state, "catalog.yaml");
  await Deno.copyFile(join(ROOT, "examples/catalog.yaml"), catalog);
  await using heddle = await Heddle.start({ state, port: place.port }, [
    "--dist",
    release.dist,
    "--catalog",
    catalog,
  ]);
  const [replica] = await heddle.replicas();
  ok(replica);
  const answer = await fetch(`${heddle.openaiUrl}/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model: replica.model, messages: [{ role: "user", content: "Hello!" }] }),
  });
  equal(answer.status, 200);
  const { choices } = await answer.json();
  match(choices[0].message.content, /\w/);
  const nodes = await runCommand(join(release.dist, "bin/heddle"), ["nodes"], {
    HEDDLE_CTL_CONFIG: join(state, "ctl/config.yaml"),
  });
  equal(nodes.code, 0, nodes.stderr);
  match(nodes.stdout, /ready/);
  if (release.form === "bundle") {
    for (const room of ["control", "router", "agent", "sim"]) {
      const pids = await findByArgument(join(release.dist, `lib/heddle-${room}.mjs`));
      equal(pids.length, 1, `processes of ${room}`);
    }
  }
  equal(await heddle.stop(), 0);
}

async function compareGrants(
  program: (typeof PROGRAMS)[number],
  release: BuiltRelease,
): Promise<void> {
  const queries = permissionQueries(await Deno.readTextFile(join(ROOT, "deno.json")));
  const settings: readonly Readonly<Record<string, string>>[] = [
    {},
    { HEDDLE_STATE: "/s/t", HEDDLE_READ: "/s/u,/s/v", HEDDLE_NVIDIA_SMI: "/s/nvidia-smi" },
    { HEDDLE_CTL_CONFIG: "/s/ctl/config.yaml" },
  ];
  const seen: (readonly boolean[])[] = [];
  for (const env of settings) {
    const ask = { queries, env: { HOME: "/nowhere", ...env } };
    const here = await probe(program, { ...ask, launchers: { kind: "repository" } });
    const there = await probe(program, {
      ...ask,
      launchers: { kind: "release", dist: release.dist },
    });
    const different = queries.filter((_query, index) =>
      here.granted[index] !== there.granted[index]
    );
    deepEqual({ env, different }, { env, different: [] });
    ok(there.granted.includes(true) && there.granted.includes(false));
    seen.push(there.granted);
  }
  if (program.moves === "state") notDeepEqual(seen[0], seen[1]);
  if (program.moves === "ctl") notDeepEqual(seen[0], seen[2]);
}

async function compareEmbedded({ dist, state }: BuiltRelease): Promise<void> {
  const config = await Deno.readTextFile(join(ROOT, "deno.json"));
  for (const { room, name } of PROGRAMS) {
    const { set } = readGrants(config, room);
    const embedded = readEmbedded(await Deno.readFile(join(dist, "bin", name)));
    deepEqual(differences(embedded, settle(set, { root: dist, state })), [], name);
  }
}

async function buildAgain({ dist, state }: BuiltRelease): Promise<void> {
  const again = join(state, "again/deeper");
  await build(["--out", again]);
  equal(
    await Deno.readTextFile(join(again, "SHA256SUMS")),
    await Deno.readTextFile(join(dist, "SHA256SUMS")),
  );
  await Deno.remove(again, { recursive: true });
}

/** Where an ELF file says for which machines it is, and what it says. */
const ELF_MACHINE = 18;
const MACHINES = { x86_64: 0x3e, aarch64: 0xb7 };

async function buildOther({ dist, state }: BuiltRelease): Promise<void> {
  const arch = Deno.build.arch === "x86_64" ? "aarch64" : "x86_64";
  const other = join(state, "other");
  await build(["--arch", arch, "--out", other]);
  equal((await Deno.readFile(join(other, "runtime/deno")))[ELF_MACHINE], MACHINES[arch]);
  const lines = async (folder: string) =>
    new Set((await Deno.readTextFile(join(folder, "SHA256SUMS"))).trimEnd().split("\n"));
  const different = (await lines(other)).difference(await lines(dist));
  deepEqual([...different].map((line) => line.slice(66)), ["release.json", "runtime/deno"]);
  await Deno.remove(other, { recursive: true });
}
