/** heddle-control: reads flags and configuration, runs control, and stops it on a signal. */
import { errorText } from "@heddle/proto/error";
import { formatAddress } from "@heddle/common/address";
import { loadConfig } from "@heddle/common/config_file";
import { logger } from "@heddle/common/log";
import { type ProgramFlags, runProgram } from "@heddle/common/program";
import { openSdNotify } from "@heddle/common/sd_notify";
import { configSchema, settingsOf } from "./config.ts";
import { type Control, startControl } from "./control.ts";
import { catalogSchema } from "./core/catalog.ts";

const DEFAULT_CONFIG = "/etc/heddle/control.yaml";
const log = logger("control");

/** Set while control runs, for SIGHUP. */
let running: { readonly control: Control; readonly configFile: string } | undefined;

/** Of the configuration only what control can tell without a restart is taken. */
async function reload(): Promise<void> {
  if (running === undefined) return;
  const { control, configFile } = running;
  try {
    const config = await loadConfig(configSchema, configFile);
    await control.reload(settingsOf(config).engines);
  } catch (error) {
    log.error("Cannot read the configuration again; nothing is reloaded", {
      reason: errorText(error),
    });
  }
}

async function run(flags: ProgramFlags, stop: AbortSignal): Promise<void> {
  const catalog = flags.extra["check-catalog"];
  if (catalog !== undefined) {
    await loadConfig(catalogSchema, catalog);
    Deno.stdout.writeSync(new TextEncoder().encode(`${catalog}: ok\n`));
    return;
  }
  const configFile = flags.config ?? DEFAULT_CONFIG;
  const config = await loadConfig(configSchema, configFile);
  const systemd = openSdNotify({
    folder: config.state_directory,
    socket: Deno.env.get("NOTIFY_SOCKET"),
    watchdog: Deno.env.get("WATCHDOG_USEC"),
  });
  const control = await startControl(settingsOf(config)).catch((error: unknown) => {
    systemd.close();
    throw error;
  });
  running = { control, configFile };
  systemd.ready();
  log.info("Started", {
    agents: formatAddress(control.agents),
    admin: formatAddress(control.admin),
    metrics: formatAddress(control.metrics),
  });
  try {
    await Promise.race([aborted(stop), control.failed]);
  } finally {
    running = undefined;
    systemd.stopping();
    await control.stop();
    systemd.close();
  }
  log.info("Stopped; engines go on");
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    signal.addEventListener("abort", () => resolve(), { once: true });
  });
}

await runProgram({
  name: "heddle-control",
  purpose: "decides what runs where and tells agents and routers",
  flags: { "check-catalog": "validate a catalog and exit" },
  checkConfig: (file) => loadConfig(configSchema, file),
  run,
  reload: () => void reload(),
});
