/** heddle-router: serves the OpenAI API from a fleet of engines. */
import { loadConfig } from "@heddle/common/config_file";
import { formatAddress } from "@heddle/common/address";
import { DenyListCopy } from "@heddle/common/deny_list";
import { logger } from "@heddle/common/log";
import { startMetrics } from "@heddle/common/metrics";
import { startMetricsServer } from "@heddle/common/metrics_server";
import { measureExpiry } from "@heddle/common/renewal";
import { HeddleError } from "@heddle/proto/error";
import { openSdNotify } from "@heddle/common/sd_notify";
import { spawnTask } from "@heddle/common/task";
import { runProgram } from "@heddle/common/program";
import { configSchema } from "./config.ts";
import { type Settings, settingsOf } from "./settings/settings.ts";
import { sendHeap } from "./edge/observe/heap.ts";
import { startRouter } from "./router.ts";

const CONFIG_FILE = "/etc/heddle/router.yaml";

let reload = () => {};

async function run(settings: Settings, stop: AbortSignal): Promise<void> {
  const log = logger("router");
  const metrics = startMetrics("heddle-router");
  const systemd = openSdNotify({
    folder: settings.stateDirectory,
    socket: Deno.env.get("NOTIFY_SOCKET"),
    watchdog: Deno.env.get("WATCHDOG_USEC"),
  });
  try {
    const { tls } = settings.control ?? {};
    if (tls !== undefined) measureExpiry(metrics.registry, tls);
    const secure = settings.adminTls && tls && { listen: settings.adminTls, files: tls };
    const denyList = secure && new DenyListCopy(settings.stateDirectory);
    await denyList?.load();
    const router = await startRouter(settings, metrics.registry, {
      ...inheritedSocket(),
      denyList,
    });
    const admin = await startMetricsServer({
      listen: settings.admin,
      secure,
      ...(denyList === undefined ? {} : { refuses: denyList.refuses }),
      registry: metrics.registry,
      notReady: router.notReady,
      routes: settings.heapSnapshots ? { "/debug/heap": sendHeap } : {},
    });
    denyList?.onChange(() => admin.recheck());
    reload = () =>
      spawnTask("reload", async () => {
        await router.reload();
        await admin.reload();
      });
    log.info("Serving", {
      name: settings.name,
      listen: formatAddress(router.address),
      admin: formatAddress(admin.address),
    });
    systemd.ready();
    await aborted(stop);
    systemd.stopping();
    await router.stop();
    await admin.close();
  } finally {
    systemd.close();
    metrics.stop();
  }
}

/** systemd hands sockets over from descriptor 3 on, and says to which process they belong. */
function inheritedSocket(): { inheritedFd?: number } {
  const count = Number(Deno.env.get("LISTEN_FDS") ?? 0);
  const mine = Number(Deno.env.get("LISTEN_PID")) === Deno.pid;
  if (!mine || count === 0) return {};
  if (count === 1) return { inheritedFd: 3 };
  throw new HeddleError(
    "invalid_input",
    `Cannot choose among ${count} inherited sockets: want one ListenStream= in the socket unit`,
  );
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    signal.addEventListener("abort", () => resolve(), { once: true });
  });
}

if (import.meta.main) {
  await runProgram({
    name: "heddle-router",
    purpose: "serves the OpenAI API from a fleet of engines",
    checkConfig: (file) => loadConfig(configSchema, file),
    run: async ({ config }, stop) => {
      const settings = settingsOf(
        await loadConfig(configSchema, config ?? CONFIG_FILE),
        Deno.hostname(),
      );
      await run(settings, stop);
    },
    reload: () => reload(),
  });
}
