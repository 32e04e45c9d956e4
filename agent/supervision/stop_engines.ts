/** Stops every engine that an agent of this state directory started: before a node is removed. */
import { logger } from "@heddle/common/log";
import { HeddleError } from "@heddle/proto/error";
import { type AgentOptions, buildAgent } from "../agent.ts";
import { lockState } from "../edge/state_lock.ts";
import { ended } from "../core/shard/shard.ts";

const log = logger("agent");

/** Beyond the stop timeout that each shard has itself. */
const EXTRA_MS = 30_000;

/** Waits until all have ended. Throws `system` naming what still runs. */
export async function stopEngines(options: AgentOptions, stop: AbortSignal): Promise<void> {
  using _lock = await lockState(options.config.state_directory);
  const address = options.config.address ?? "127.0.0.1";
  // No engine is started here, so none is looked at.
  const { supervisor, launcher, engines } = await buildAgent(
    { ...options, config: { ...options.config, engines: [] } },
    address,
    { onStatus: () => {}, onEngines: () => {}, onNvidiaSmi: () => {} },
  );
  await engines.look(stop);
  await supervisor.adopt();
  const running = supervisor.statuses().filter(({ shard }) => !ended(shard.state));
  const timeoutMs = Math.max(0, ...running.map(({ shard }) => shard.spec.stopTimeoutMs)) + EXTRA_MS;
  const deadline = AbortSignal.any([stop, AbortSignal.timeout(timeoutMs)]);
  await supervisor.stopAll("node_stopped", deadline);
  await supervisor.close();
  const left = await launcher.list();
  if (left.length > 0) {
    const pids = [...new Set(left.map(({ pid }) => pid))].join(", ");
    throw new HeddleError("system", `Cannot stop all engines: pid ${pids} still runs`);
  }
  const text = running.length === 0
    ? "No engine was running"
    : `Stopped ${running.length} ${running.length === 1 ? "engine" : "engines"}`;
  log.info(text);
  Deno.stdout.writeSync(new TextEncoder().encode(`${text}\n`));
}
