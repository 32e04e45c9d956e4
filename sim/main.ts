/** heddle-sim: reads the command line, loads, meets the other ranks, serves, and stops when told. */
import { connect, isIPv6 } from "node:net";
import process from "node:process";
import { VERSION } from "@heddle/common/version";
import { blockCount, type Group, groupOf, readConfig, type SimConfig } from "./config.ts";
import { DEATH_CAUSES, isLoadFault } from "./core/fault.ts";
import { parseArguments, UsageError } from "./core/options.ts";
import { flushLog, log, logRaw } from "./edge/log.ts";
import { meet, type Rendezvous, RendezvousError } from "./edge/rendezvous.ts";
import { helpText } from "./help.ts";
import { Simulation } from "./simulation.ts";

/** Far more than a local port takes to answer. */
const PORT_PROBE_MS = 1_000;

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
  const config = readConfig(
    { ...parsed, positionals: named },
    (name) => Deno.env.get(name),
  );
  await run(config);
}

function print(text: string): void {
  Deno.stdout.writeSync(new TextEncoder().encode(text));
}

async function run(config: SimConfig): Promise<void> {
  log("INFO", "sim", `simulated engine ${VERSION}, seed ${config.seed}; no model is behind it`);
  const signals = listenForSignals(config);
  if (!config.headless) await refuseTakenPort(config);
  const group = groupOf(config);
  const meeting = group.rankCount > 1 ? await meetRanks(config, group) : undefined;
  await load(config);
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
    const reason = error instanceof Error ? error.message : String(error);
    log("ERROR", "sim", cannotBind(config, reason));
    await leave(1);
  }
}

function exit(code: number, how: "now" | "after_log"): void {
  if (how === "now") Deno.exit(code);
  leave(code);
}

/** vLLM binds its port before it loads, so that a second engine fails at once; so does this one. */
async function refuseTakenPort(config: SimConfig): Promise<void> {
  if (config.port === 0) return;
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const probe = connect({ host: config.host, port: config.port }, () => resolve(true));
  probe.once("error", () => resolve(false));
  probe.setTimeout(PORT_PROBE_MS, () => resolve(false));
  const taken = await promise;
  probe.destroy();
  if (!taken) return;
  log("ERROR", "sim", cannotBind(config, "address already in use"));
  await leave(1);
}

/** In vLLM's words, which tools that read engine logs know. */
function cannotBind(config: SimConfig, reason: string): string {
  const number = /in use/i.test(reason) ? "[Errno 98] " : "";
  return `${number}error while attempting to bind on address ` +
    `('${config.host}', ${config.port}): ${reason}`;
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

async function load(config: SimConfig): Promise<void> {
  const faults = config["sim-fault"].filter(isLoadFault);
  log("INFO", "loader", `Loading model ${config.model}, tp=${config["tensor-parallel-size"]}`);
  const death = faults.find((fault) => fault.kind === "die_loading");
  if (death !== undefined) {
    await wait(death.at_ms);
    logRaw("Traceback (most recent call last):");
    logRaw(DEATH_CAUSES[death.cause]);
    logRaw("RuntimeError: Engine core initialization failed. See root cause above.");
    await leave(death.code);
  }
  if (faults.some((fault) => fault.kind === "never_ready")) await new Promise(() => {});
  const slowMs = faults.reduce(
    (sum, fault) => sum + (fault.kind === "slow_load" ? fault.ms : 0),
    0,
  );
  const loadMs = config["sim-load-ms"] + slowMs;
  await wait(loadMs);
  const tokens = blockCount(config) * config["block-size"];
  const concurrency = (tokens / config["max-model-len"]).toFixed(2);
  log("INFO", "loader", `Model loading took ${(loadMs / 1000).toFixed(2)} seconds`);
  log("INFO", "loader", `GPU KV cache size: ${tokens.toLocaleString("en")} tokens`);
  log(
    "INFO",
    "loader",
    `Maximum concurrency for ${config["max-model-len"].toLocaleString("en")} tokens per request: ` +
      `${concurrency}x`,
  );
}

function wait(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
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
