/**
 * `deno task lab:limits`: what control groups do to engines, on a machine that has them. Where this
 * machine's own are of version 1, no node of the lab has any; so one is emulated, with Debian's kernel,
 * and tells what its agent made of engines that go past their limits. On demand only: it takes minutes.
 */
import { equal, match } from "node:assert/strict";
import { join } from "node:path";
import { parseBuildOptions } from "../../../tools/build/options.ts";
import { writeRelease } from "../../../tools/build/release.ts";
import { ROOT } from "../../../tools/repository.ts";
import { runTool, say } from "../../../tools/say.ts";
import { attemptCommand, runCommand } from "../command.ts";
import { openBase } from "../machine/base.ts";
import { prepareHost } from "../machine/host.ts";
import { MODELS, writeDisk } from "./disk.ts";

const KERNEL_PACKAGE = "linux-image-cloud-amd64";

/** An emulated machine boots in half a minute, and an agent in it needs as long again. */
const RUN_MS_MAX = 900_000;

const ARTEFACTS = join(ROOT, ".heddle/lab/limits");

async function main(): Promise<void> {
  if (Deno.build.arch !== "x86_64") throw new Error("Cannot run it: the machine is an x86-64 one");
  await prepareHost(say);
  await install("qemu-system-x86", ["qemu-system-x86_64"]);
  await install("e2fsprogs", ["mke2fs"]);
  const cache = join(Deno.env.get("HOME") ?? "/root", ".cache/heddle/lab");
  const base = await openBase(cache, say);
  await Deno.remove(ARTEFACTS, { recursive: true }).catch(() => {});
  await Deno.mkdir(ARTEFACTS, { recursive: true });
  const work = await Deno.makeTempDir({ prefix: "heddle-limits-" });
  try {
    const kernel = await fetchKernel(work);
    const release = Deno.env.get("HEDDLE_DIST") ?? join(work, "release");
    if (Deno.env.get("HEDDLE_DIST") === undefined) {
      const machine = { root: ROOT, own: Deno.build.arch };
      await writeRelease(parseBuildOptions(["--out", release], machine));
    }
    const disk = join(work, "disk");
    await writeDisk({ base, release, folder: join(work, "root"), disk });
    const startedAt = performance.now();
    const told = await run({ kernel, disk });
    say(`The machine was up for ${Math.round((performance.now() - startedAt) / 1_000)} s`);
    check(told);
  } finally {
    await Deno.remove(work, { recursive: true });
  }
}

async function install(debianPackage: string, programs: readonly string[]): Promise<void> {
  const found = await Promise.all(
    programs.map((name) => attemptCommand(["/bin/sh", "-c", 'command -v "$1"', "sh", name])),
  );
  if (found.every(({ code }) => code === 0)) return;
  say(`Installing ${debianPackage}`);
  const argv = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", debianPackage];
  await runCommand(argv, { limitMs: 300_000, env: { DEBIAN_FRONTEND: "noninteractive" } });
}

/** Debian's kernel for virtual machines, which has drivers for this disk built in. */
async function fetchKernel(work: string): Promise<string> {
  const depends = await runCommand(["apt-cache", "depends", KERNEL_PACKAGE]);
  const name = /Depends: (linux-image-\S+)/.exec(depends)?.[1];
  if (name === undefined) {
    throw new Error(`Debian's ${KERNEL_PACKAGE} names no kernel:\n${depends}`);
  }
  const script = 'cd "$1" && apt-get download -qq "$2" && dpkg-deb --extract ./*.deb kernel';
  await runCommand(["/bin/sh", "-c", script, "sh", work, name], { limitMs: 300_000 });
  for await (const entry of Deno.readDir(join(work, "kernel/boot"))) {
    if (entry.name.startsWith("vmlinuz-")) return join(work, "kernel/boot", entry.name);
  }
  throw new Error(`${name} has no kernel`);
}

/** Boots it, waits until it powers itself off, and gives what it told, by name. */
async function run(
  { kernel, disk }: { readonly kernel: string; readonly disk: string },
): Promise<ReadonlyMap<string, string>> {
  const told = join(ARTEFACTS, "told.tsv");
  const { code, stderr } = await attemptCommand([
    "qemu-system-x86_64",
    // Also where there is a /dev/kvm: behind one that does not work nothing would ever happen.
    ...["-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2", "-m", "2048"],
    ...["-nodefaults", "-display", "none", "-monitor", "none", "-no-reboot"],
    ...["-kernel", kernel, "-append", "root=/dev/nvme0n1 rw console=ttyS0 panic=-1 quiet"],
    ...["-drive", `file=${disk},if=none,id=disk,format=raw,cache=unsafe`],
    ...["-device", "nvme,drive=disk,serial=lab"],
    ...["-serial", `file:${join(ARTEFACTS, "console.txt")}`, "-serial", `file:${told}`],
  ], { limitMs: RUN_MS_MAX });
  if (code !== 0) throw new Error(`qemu-system-x86_64 ended with ${code}: ${stderr}`);
  const lines = (await Deno.readTextFile(told)).split(/\r?\n/).filter((line) => line !== "");
  return new Map(lines.map((line) => {
    const [name = "", ...value] = line.split("\t");
    return [name, value.join("\t")];
  }));
}

function check(told: ReadonlyMap<string, string>): void {
  const of = (name: string) => told.get(name) ?? "";
  for (const name of ["kernel", "systemd"]) say(`${name}: ${of(name)}`);
  for (const { model } of MODELS) {
    const words = /"message": "((?:[^"\\]|\\.)*)"/.exec(of(model))?.[1] ?? "no failure";
    say(`\n${model}: ${words}`);
  }
  say("");
  equal(of("end"), "ok", `It did not come to its end: see ${ARTEFACTS}`);
  equal(of("cgroup"), "cgroup2fs");
  for (const model of ["eat", "child_eats"]) {
    match(of(model), /"reason": "host_out_of_memory"/);
    match(of(model), /"outOfMemory": true/);
    match(of(model), /killed because memory ran out/);
  }
  match(of("limited_pin"), /"reason": "memlock_limited"/);
  match(of("limited_pin"), /could lock 64 KiB of memory/i);
  match(of("pin"), /"kind": "ready"/);
  match(of("log"), /locked memory: unlimited KiB, files: 1048576, core dumps: 0 .*pinned 64 MiB/);
  say(
    "Engines past their limits were told of in words, and the one without a limit pinned its memory",
  );
}

if (import.meta.main) await runTool(main);
