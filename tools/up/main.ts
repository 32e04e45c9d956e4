/** `deno task up`: Heddle's whole path on this machine, with one command. */
import { resolve } from "node:path";
import { errorText, HeddleError } from "@heddle/proto/error";
import { claimState } from "./processes/claim.ts";
import { Cluster } from "./processes/cluster.ts";
import { findByArgument } from "./processes/find_process.ts";
import { forgetOtherPlan } from "./layout/last_plan.ts";
import { layOut } from "./layout/layout.ts";
import { demandListablePaths } from "./layout/listable_path.ts";
import { planUp } from "./layout/node.ts";
import { parseUpOptions, UP_HELP, type UpOptions } from "./options.ts";
import { demandFreePorts, layPorts } from "./layout/ports.ts";
import { waitUntilReady } from "./progress.ts";
import {
  readSession,
  removeSession,
  type Session,
  writeSession,
} from "./processes/session_file.ts";
import { formatSummary } from "./summary.ts";
import { awaitStopOrder, isRunning } from "./processes/stop_order.ts";
import { checkCatalog } from "./check_catalog.ts";
import { detach } from "./detach.ts";
import {
  denoCommand,
  launcherDirectory,
  ROOT,
  say,
  shellWord,
  stateDirectory,
} from "./terminal.ts";

if (import.meta.main) Deno.exit(await main(Deno.args));

async function main(args: readonly string[]): Promise<number> {
  try {
    const options = parseUpOptions(args);
    if (options.help) {
      say(UP_HELP.trimEnd());
      return 0;
    }
    const state = stateDirectory(options);
    await demandNotRunning(options, state);
    if (options.detach) return await detach(args, state);
    return await up(options, state);
  } catch (error) {
    if (!(error instanceof HeddleError)) throw error;
    say(error.message);
    return error.code === "invalid_input" ? 2 : 1;
  }
}

async function demandNotRunning(options: UpOptions, state: string): Promise<void> {
  const session = await readSession(state);
  if (session === undefined) return;
  if (await isRunning(session)) throw alreadyUp(options, state);
  for (const program of session.programs) {
    if ((await findByArgument(program.config)).length === 0) continue;
    throw new HeddleError(
      "failed_precondition",
      `Cannot start: an up that was killed left its ${program.label} running from ${state}. ` +
        `Stop what it left with ${denoCommand()} task down${downFlags(options)}`,
    );
  }
}

function alreadyUp(options: UpOptions, state: string): HeddleError {
  return new HeddleError(
    "failed_precondition",
    `Cannot start: Heddle is already up from ${state}. Stop it with ${denoCommand()} task down` +
      `${downFlags(options)}, or start another with --ports-from N`,
  );
}

async function up(options: UpOptions, state: string): Promise<number> {
  const bin = await launcherDirectory(options);
  const plan = await planUp(options, { root: ROOT, bin, hostname: Deno.hostname() });
  if ("file" in plan.catalog) await checkCatalog(bin, plan.catalog.file);
  demandListablePaths(state, plan);
  using claim = await claimState(state);
  if (claim === undefined) throw alreadyUp(options, state);
  const ports = layPorts(plan.nodes.length, options.portsFrom);
  demandFreePorts(ports);
  await forgetOtherPlan(state, plan, say);
  const laid = await layOut({ bin, state, plan, ports, logFormat: options.logFormat });
  const token = crypto.randomUUID();
  const orders = await awaitStopOrder(token);
  const session: Session = {
    pid: Deno.pid,
    stopPort: orders.port,
    token,
    programs: [laid.router, ...laid.agents, laid.control].map((spec) => ({
      label: spec.label,
      launcher: spec.launcher,
      config: spec.args[1] ?? "",
    })),
  };
  await writeSession(state, session);
  const stop = listenForStop();
  say(`Starting control, a router and ${countOfAgents(plan.nodes.length)}; state in ${state}`);
  const cluster = new Cluster(laid, say);
  const openaiUrl = `http://127.0.0.1:${ports.openai}/v1`;
  const ready = waitUntilReady({ ctlConfig: laid.ctlConfig, openaiUrl, say, signal: stop.signal })
    .then(async (models) => {
      const summary = formatSummary({
        openaiUrl,
        consoleUrl: `http://127.0.0.1:${ports.console}/`,
        models,
        state,
        ctlConfig: isFoundByCtl(options) ? undefined : laid.ctlConfig,
        detached: Deno.env.get("HEDDLE_UP_DETACHED") !== undefined,
        deno: denoCommand(),
        downFlags: downFlags(options),
      });
      await writeSession(state, { ...session, summary });
      say(summary);
    });
  ready.catch(() => {});
  const why = await Promise.race([
    stop.signalled.then(() => ({ kind: "signal" as const })),
    orders.ordered.then((order) => ({ kind: "order" as const, order })),
    cluster.gaveUp.then((message) => ({ kind: "failed" as const, message })),
    ready.then(() => new Promise<never>(() => {}), (error: unknown) => ({
      kind: "failed" as const,
      message: errorText(error),
    })),
  ]);
  stop.abort();
  const tell = (line: string) => {
    say(line);
    if (why.kind === "order") why.order.say(line);
  };
  if (why.kind === "failed") {
    say(why.message);
    await writeSession(state, { ...session, failure: why.message });
  }
  tell("Stopping everything that was started");
  await cluster.stop(tell);
  if (why.kind === "order") why.order.end();
  await removeSession(state);
  await orders.close();
  stop.remove();
  return why.kind === "failed" ? 1 : 0;
}

// ctl looks into the usual state directory by itself.
function isFoundByCtl({ portsFrom, state }: UpOptions): boolean {
  return portsFrom === undefined && state === undefined;
}

function downFlags(options: UpOptions): string {
  if (options.state !== undefined) return ` --state ${shellWord(resolve(options.state))}`;
  return options.portsFrom === undefined ? "" : ` --ports-from ${options.portsFrom}`;
}

// SIGHUP too: a closed terminal must not leave engines behind. Only the first signal counts, so
// that an impatient second Ctrl-C does not cut the clean-up short.
function listenForStop() {
  const controller = new AbortController();
  const { promise, resolve: signalled } = Promise.withResolvers<void>();
  const signals: Deno.Signal[] = ["SIGINT", "SIGTERM", "SIGHUP"];
  const listener = () => signalled();
  for (const name of signals) Deno.addSignalListener(name, listener);
  return {
    signal: controller.signal,
    signalled: promise,
    abort: () => controller.abort(),
    remove: () => signals.forEach((name) => Deno.removeSignalListener(name, listener)),
  };
}

function countOfAgents(count: number): string {
  return count === 1 ? "an agent" : `${count} agents`;
}
