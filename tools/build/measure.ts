/**
 * Compares the repository's programs with those of a release: from the start of the launcher until
 * `/ready` answers, and what a program then holds in memory.
 *
 *     deno run -P=up --quiet tools/build/measure.ts dist [ROUNDS]
 *
 * In each round control, a router and an agent start one after another, without a model, and stop
 * again. Rounds of both kinds take turns, so that a machine that is busy is so for both.
 */
import { join, resolve } from "node:path";
import { ROOT } from "../repository.ts";
import { runTool, say } from "../say.ts";
import type { ProgramSpec } from "../up/processes/children.ts";
import { type Laid, layOut } from "../up/layout/layout.ts";
import { layPorts, type Ports } from "../up/layout/ports.ts";

const ROUNDS = 9;
const PORTS_FROM = 47_310;
/** Between two looks at `/ready`, and so the error of a time. */
const POLL_MS = 5;
const READY_MS_MAX = 30_000;
/** From readiness until memory is read: what a start leaves behind is collected by then. */
const SETTLE_MS = 2_000;
const KB_PER_MB = 1_024;

/** What `/proc/PID/stat` counts processor time in, on every Linux that Deno runs on. */
const TICK_MS = 10;

interface Figures {
  readonly readyMs: number;
  /** Processor time until then: says the same on a busy machine. */
  readonly cpuMs: number;
  readonly rssMb: number;
  /** What no other process has a part in; the runtime's own pages are shared. */
  readonly privateMb: number;
}

if (import.meta.main) {
  await runTool(async () => {
    const [dist = "dist", rounds = String(ROUNDS)] = Deno.args;
    const bins = { repository: join(ROOT, "bin"), release: join(resolve(dist), "bin") };
    const found = new Map<string, Figures[]>();
    for (let round = 0; round < Number(rounds); round++) {
      for (const [form, bin] of Object.entries(bins)) {
        for (const [label, figures] of await measureRound(bin)) {
          const key = `${label.padEnd(8)} ${form.padEnd(10)}`;
          found.set(key, [...found.get(key) ?? [], figures]);
        }
      }
    }
    say("medians           ready ms (fastest)   CPU ms   RSS MB   private MB");
    for (const [key, all] of [...found].sort()) {
      const fastest = Math.min(...all.map(({ readyMs }) => readyMs)).toFixed(0);
      const column = (of: (figures: Figures) => number) =>
        median(all.map(of)).toFixed(0).padStart(9);
      say(
        `${key}${column(({ readyMs }) => readyMs).slice(2)} ${`(${fastest})`.padEnd(10)}` +
          column(({ cpuMs }) => cpuMs) + column(({ rssMb }) => rssMb) + column(({ privateMb }) =>
            privateMb
          ),
      );
    }
  });
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? NaN;
}

async function measureRound(bin: string): Promise<Map<string, Figures>> {
  const state = await Deno.makeTempDir({ prefix: "heddle-measure-" });
  const running: Deno.ChildProcess[] = [];
  try {
    const ports = layPorts(1, PORTS_FROM);
    const laid = await layOut({
      bin,
      state,
      ports,
      logFormat: "json",
      plan: planWithoutModels(bin),
    });
    const ready = new Map<string, { pid: number; readyMs: number; cpuMs: number }>();
    for (const { spec, port } of programs(laid, ports)) {
      const startedAt = performance.now();
      const process = start(spec);
      running.push(process);
      await untilReady(spec, port);
      const readyMs = performance.now() - startedAt;
      ready.set(spec.label, { pid: process.pid, readyMs, cpuMs: await cpuOf(process.pid) });
    }
    await new Promise((settled) => setTimeout(settled, SETTLE_MS));
    const figures = new Map<string, Figures>();
    for (const [label, { pid, ...times }] of ready) {
      figures.set(label, { ...times, ...await memoryOf(pid) });
    }
    return figures;
  } finally {
    for (const process of running.reverse()) {
      stop(process);
      await process.status;
    }
    await Deno.remove(state, { recursive: true });
  }
}

function planWithoutModels(bin: string) {
  return {
    nodes: [{
      name: "measured",
      engines: [{ name: "sim", path: join(bin, "heddle-sim") }],
      described: undefined,
      modelDirs: [],
    }],
    catalog: { text: "models: []\n" },
  };
}

function programs(laid: Laid, ports: Ports): readonly { spec: ProgramSpec; port: number }[] {
  return [
    { spec: laid.control, port: ports.controlMetrics },
    { spec: laid.router, port: ports.routerAdmin },
    ...laid.agents.map((spec, index) => ({ spec, port: ports.agentMetrics[index] ?? 0 })),
  ];
}

function start(spec: ProgramSpec): Deno.ChildProcess {
  return new Deno.Command(spec.launcher, {
    args: [...spec.args],
    env: { ...spec.env, HEDDLE_LOG_FILE: spec.logFile },
    stdin: "null",
    stdout: "null",
    stderr: "null",
  }).spawn();
}

function stop(process: Deno.ChildProcess): void {
  try {
    process.kill("SIGTERM");
  } catch {
    // It has ended already, which untilReady() tells of.
  }
}

async function untilReady(spec: ProgramSpec, port: number): Promise<void> {
  const deadline = performance.now() + READY_MS_MAX;
  while (!await answers(port)) {
    if (performance.now() > deadline) {
      throw new Error(`${spec.label} is not ready:\n${await Deno.readTextFile(spec.logFile)}`);
    }
    await new Promise((tick) => setTimeout(tick, POLL_MS));
  }
}

async function answers(port: number): Promise<boolean> {
  try {
    const answer = await fetch(`http://127.0.0.1:${port}/ready`);
    await answer.body?.cancel();
    return answer.ok;
  } catch {
    return false;
  }
}

// Deno may not look into /proc itself.
async function readProc(pid: number, file: string): Promise<string> {
  const { stdout } = await new Deno.Command("/bin/sh", {
    args: ["-c", 'cat "/proc/$0/$1"', String(pid), file],
  }).output();
  return new TextDecoder().decode(stdout);
}

async function cpuOf(pid: number): Promise<number> {
  // The name may hold blanks and parentheses: fields count from the last ")".
  const fields = (await readProc(pid, "stat")).split(") ").at(-1)?.split(" ") ?? [];
  return (Number(fields[11]) + Number(fields[12])) * TICK_MS;
}

async function memoryOf(pid: number): Promise<{ rssMb: number; privateMb: number }> {
  const text = await readProc(pid, "smaps_rollup");
  const line = (name: string) =>
    Number(new RegExp(`^${name}:\\s+(\\d+)`, "m").exec(text)?.[1]) / KB_PER_MB;
  return { rssMb: line("Rss"), privateMb: line("Private_Clean") + line("Private_Dirty") };
}
