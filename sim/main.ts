/** heddle-sim: reads the command line, meets the other ranks, loads, serves, and stops when told. */
import { isIPv6 } from "node:net";
import process from "node:process";
import { VERSION } from "@heddle/common/version";
import { type Group, groupOf, readConfig, type SimConfig } from "./config.ts";
import { parseArguments, UsageError } from "./core/options.ts";
import { flushLog, log } from "./edge/log.ts";
import { portProblem } from "./edge/port_probe.ts";
import { meet, type Rendezvous, RendezvousError } from "./edge/rendezvous.ts";
import { helpText } from "./help.ts";
import { load } from "./load.ts";
import { Simulation } from "./simulation.ts";

/** Ends the process once its last words are written. */
async function leave(code: number): Promise<never> {
  await flushLog();
  Deno.exit(code);
}

async function main(args: readonly string[]): Promise<void> {
  const parsed = parseArguments(args);
  if (parsed.values.has("help") || args.length === 0) return print(helpText());
  if (parsed.values.has("version")) return print(`sim ${VERSION}\n`);
  const [command, ...positionals] = parsed.positionals;
  if (command !== "serve") throw new UsageError(`unknown command "${command ?? ""}"; use serve`);
  if (positionals.length > 1) {
    throw new UsageError(`one MODEL only, got ${positionals.join(" ")}`);
  }
  const named = positionals.length === 0 ? parsed.values.get("model") ?? [] : positionals;
  await run(readConfig({ ...parsed, positionals: named }, (name) => Deno.env.get(name)));
}

function print(text: string): void {
  Deno.stdout.writeSync(new TextEncoder().encode(text));
}

async function run(config: SimConfig): Promise<void> {
  log("INFO", "sim", `simulated engine ${VERSION}, seed ${config.seed}; no model is behind it`);
  const signals = listenForSignals(config);
  // vLLM binds its port before it loads, so that a second engine there fails at once; so does this one.
  const problem = config.headless ? undefined : await portProblem(config.host, config.port);
  if (problem !== undefined) return await failToBind(config, problem);
  const group = groupOf(config);
  const meeting = group.rankCount > 1 ? await meetRanks(config, group) : undefined;
  const died = await load(config);
  if (died !== undefined) await leave(died);
  if (config.headless) {
    log("INFO", "sim", `rank ${group.rank} is up and serves no HTTP`);
    return;
  }
  const simulation = new Simulation({ config, version: VERSION, clock: performance, exit });
  if (meeting?.oneFabric === false) {
    log("WARNING", "nccl", "ranks are on different fabrics: the first collective will not return");
    simulation.hangAtFirstRequest();
  }
  signals.simulation = simulation;
  try {
    const port = await simulation.serve();
    const host = isIPv6(config.host) ? `[${config.host}]` : config.host;
    log("INFO", "sim", `Application startup complete: http://${host}:${port}`);
  } catch (error) {
    await failToBind(config, error instanceof Error ? error.message : String(error));
  }
}

function exit(code: number, how: "now" | "after_log"): void {
  if (how === "now") Deno.exit(code);
  leave(code);
}

/** In vLLM's words, which tools that read engine logs know. */
async function failToBind(config: SimConfig, reason: string): Promise<never> {
  const number = /in use/i.test(reason) ? "[Errno 98] " : "";
  const address = `('${config.host}', ${config.port})`;
  log(
    "ERROR",
    "sim",
    `${number}error while attempting to bind on address ${address}: ${reason}`,
  );
  return await leave(1);
}

async function meetRanks(config: SimConfig, group: Group): Promise<Rendezvous> {
  const { rank, rankCount } = group;
  log("INFO", "rendezvous", `rank ${rank} of ${rankCount} waits for the others`);
  try {
    const meeting = await meet({
      ...group,
      timeoutMs: config["sim-rendezvous-timeout-ms"],
      fabric: config["sim-fabric"],
    });
    log("INFO", "rendezvous", `all ${rankCount} ranks are here`);
    meeting.broken.then((why) => {
      log("ERROR", "rendezvous", `torch.distributed.DistBackendError: ${why}`);
      return leave(1);
    });
    return meeting;
  } catch (error) {
    if (!(error instanceof RendezvousError)) throw error;
    log("ERROR", "rendezvous", error.message);
    return await leave(1);
  }
}

/** The first signal stops as told, a second one at once; before the engine serves, any stops it. */
function listenForSignals(config: SimConfig): { simulation: Simulation | undefined } {
  const held: { simulation: Simulation | undefined } = { simulation: undefined };
  const ignores = config["sim-fault"].some((fault) => fault.kind === "ignore_sigterm");
  let stopping = false;
  const onSignal = async (signal: string): Promise<void> => {
    if (ignores || held.simulation?.ignoresSigterm === true) {
      log("WARNING", "fault", `${signal} is ignored`);
      return;
    }
    if (stopping || held.simulation === undefined) return leave(0);
    stopping = true;
    log("INFO", "sim", `${signal}: shutting down`);
    await held.simulation.stop(config["shutdown-timeout"] * 1000);
    await leave(0);
  };
  for (const signal of ["SIGTERM", "SIGINT"] as const) {
    process.on(signal, () => onSignal(signal));
  }
  return held;
}

try {
  await main(Deno.args);
} catch (error) {
  if (!(error instanceof UsageError)) throw error;
  Deno.stderr.writeSync(new TextEncoder().encode(`heddle-sim: ${error.message}\n`));
  Deno.exit(2);
}
