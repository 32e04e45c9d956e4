/** heddle-agent: sees a node's hardware, and starts, watches and stops its engines. */
import { X509Certificate } from "node:crypto";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { toJsonString } from "@bufbuild/protobuf";
import { formatComplaints, loadConfig, parseConfig } from "@heddle/common/config_file";
import { DenyListCopy } from "@heddle/common/deny_list";
import { IDENTITY_NAME, identityOfSubjectAltName } from "@heddle/common/identity";
import { startMetrics } from "@heddle/common/metrics";
import { startMetricsServer } from "@heddle/common/metrics_server";
import { readTlsFiles } from "@heddle/common/mtls_files";
import { measureExpiry } from "@heddle/common/renewal";
import { type ProgramFlags, runProgram } from "@heddle/common/program";
import { openSdNotify } from "@heddle/common/sd_notify";
import { spawnTask } from "@heddle/common/task";
import { HeddleError } from "@heddle/proto/error";
import { InventorySchema } from "@heddle/proto/gen/types";
import { type AgentOptions, inspect, runAgent } from "./agent.ts";
import { type Config, configSchema, metricsAddress, secureMetrics } from "./config.ts";
import { inventoryTable } from "./core/host/inventory_table.ts";
import { makeModelFolders } from "./edge/model_folders.ts";
import { diagnoseFiles } from "./edge/log/diagnose_files.ts";
import { stopEngines } from "./supervision/stop_engines.ts";

const CONFIG_FILE = "/etc/heddle/agent.yaml";

/** Enough for a help text, wherever its disk is. */
const HELP_MS_MAX = 5_000;

/** Where nvidia-smi usually is; the agent's permission set names the same. */
const NVIDIA_SMI = ["/usr/bin/nvidia-smi", "/usr/lib/wsl/lib/nvidia-smi"] as const;

/** The launcher starts heddle-attach for these; who started this program itself is told so. */
const elsewhere = (word: string) => () => {
  throw new HeddleError(
    "invalid_input",
    `Cannot ${word} here: that is a program of its own, beside this one. Start heddle-attach ${word}`,
  );
};

const COMMANDS = {
  attach: {
    usage: "",
    purpose: "tell control of an engine that something else started; see docs/attach.md",
    flags: elsewhere("attach"),
  },
  script: {
    usage: "wrapper|sidecar|prelude",
    purpose: "print the shell script that brings it to a rented box",
    flags: elsewhere("script"),
  },
  inventory: {
    usage: "[-o table|json] [--no-gpu] [--capture DIR] [--replay DIR] [FLAGS]",
    purpose: "print what this node has, and exit; needs no control and no file",
    flags: inventoryFlags,
  },
  diagnose: {
    usage: "FILE...",
    purpose: 'say why an engine failed, from the logs of its ranks; "-" reads standard input',
    flags: diagnoseFlags,
  },
};

let reload = () => {};

await runProgram({
  name: "heddle-agent",
  purpose: "sees a node's hardware, and starts, watches and stops its engines",
  flags: {
    control: "URLs of control, separated by commas; with it no file is needed",
    node: "name of this node",
    address: "management address of this node",
    state: "state directory",
    tls: "folder with cert.pem, key.pem and ca.pem",
    "stop-engines": '"yes": stop every engine of this state directory, wait, and exit',
    inventory: "json or table: print what this node has and exit; needs no control",
    capture: "with --inventory: also write what was read into this folder, masked",
    replay: "with --inventory: look at such a folder instead of at this machine",
    diagnose:
      'say why an engine failed: its log; several, by commas, for several ranks; "-" for stdin',
    sysfs: "where sysfs is readable",
    "nvidia-smi": 'path of nvidia-smi; "none" for a node without',
  },
  commands: COMMANDS,
  checkConfig: (file) => loadConfig(configSchema, file),
  run: main,
  reload: () => reload(),
});

function inventoryFlags(rest: readonly string[]): readonly string[] {
  const flags: string[] = [];
  let form = "table";
  for (let at = 0; at < rest.length; at++) {
    const word = rest[at] ?? "";
    if (word === "--no-gpu") flags.push("--nvidia-smi", "none");
    else if (word === "--json") form = "json";
    else if (word === "-o" || word === "--output") form = rest[++at] ?? "";
    else if (word.startsWith("--output=")) form = word.slice("--output=".length);
    else flags.push(word);
  }
  return [`--inventory=${form}`, ...flags];
}

function diagnoseFlags(rest: readonly string[]): readonly string[] {
  const files = rest.filter((word) => word === "-" || !word.startsWith("-"));
  if (files.length === 0) {
    throw new HeddleError(
      "invalid_input",
      'Cannot diagnose nothing: name the log, or several of one replica, or "-" for standard input',
    );
  }
  return [`--diagnose=${files.join(",")}`, ...rest.filter((word) => !files.includes(word))];
}

async function main(flags: ProgramFlags, stop: AbortSignal): Promise<void> {
  const logs = flags.extra["diagnose"];
  if (logs !== undefined) return print(await diagnoseFiles(logs.split(",")));
  const config = await readConfig(flags);
  const options: AgentOptions = {
    config,
    node: await nodeName(config),
    shim: config.shim ?? ownProgram("heddle-shim"),
    fetch: ownProgram("heddle-fetch"),
    install: ownProgram("heddle-install"),
    nvidiaSmi: await nvidiaSmiOf(config, flags.extra["nvidia-smi"]),
  };
  if (flags.extra["inventory"] !== undefined) return await printInventory(options, flags, stop);
  if (flags.extra["stop-engines"] !== undefined) return await stopEngines(options, stop);
  const metrics = startMetrics("heddle-agent");
  // Ready is having taken over what runs. Were it reaching control, an outage there would have
  // every agent restarted; that there is a session is a metric of its own.
  let adopted = false;
  const systemd = openSdNotify({
    folder: config.state_directory,
    socket: Deno.env.get("NOTIFY_SOCKET"),
    watchdog: Deno.env.get("WATCHDOG_USEC"),
  });
  if (config.tls !== undefined) measureExpiry(metrics.registry, config.tls);
  const secure = secureMetrics(config);
  const denyList = secure && new DenyListCopy(config.state_directory);
  await denyList?.load();
  const server = await startMetricsServer({
    listen: metricsAddress(config),
    secure,
    ...(denyList === undefined ? {} : { refuses: denyList.refuses }),
    registry: metrics.registry,
    notReady: () => adopted ? undefined : "adopting what runs here",
  });
  denyList?.onChange(() => server.recheck());
  reload = () => spawnTask("reload", () => server.reload());
  try {
    stop.addEventListener("abort", () => systemd.stopping());
    await makeModelFolders(config.model_dirs);
    await runAgent({ ...options, denyList }, metrics, {
      signal: stop,
      onReady: () => {
        adopted = true;
        systemd.ready();
      },
    });
  } catch (error) {
    if (!stop.aborted) throw error;
  } finally {
    systemd.close();
    metrics.stop();
    await server.close();
  }
}

// The one that came with this program: in bin/, or beside a single-file executable.
function ownProgram(name: string): string {
  return Deno.build.standalone
    ? join(dirname(Deno.execPath()), name)
    : fileURLToPath(new URL(`../bin/${name}`, import.meta.url));
}

async function readConfig(flags: ProgramFlags): Promise<Config> {
  const { control, node, address, state, sysfs, tls } = flags.extra;
  const given = {
    ...(control === undefined ? {} : { control: control.split(",") }),
    ...(node === undefined ? {} : { node }),
    ...(address === undefined ? {} : { address }),
    ...(state === undefined ? {} : { state_directory: state }),
    ...(sysfs === undefined ? {} : { sysfs_root: sysfs }),
    ...(tls === undefined ? {} : { tls: tlsFilesIn(tls) }),
  };
  // What stops engines must know how they were started, where that is written down.
  const alone = control !== undefined || flags.extra["inventory"] !== undefined ||
    flags.extra["stop-engines"] !== undefined &&
      (state !== undefined || !await isThere(CONFIG_FILE));
  if (flags.config === undefined && alone) {
    // Flags are a small document, read by the same rules. What needs no control dials none.
    const document = { control: ["http://127.0.0.1:7443"], ...given };
    return parsed(document, "flags");
  }
  const config = await loadConfig(configSchema, flags.config ?? CONFIG_FILE);
  return parsed({ ...config, ...given }, "flags");
}

async function isThere(file: string): Promise<boolean> {
  return await Deno.stat(file).then(() => true, () => false);
}

function parsed(document: Record<string, unknown>, file: string): Config {
  const result = parseConfig(configSchema, JSON.stringify(document), file);
  if (result.kind === "ok") return result.value;
  throw new HeddleError("invalid_input", formatComplaints(result.complaints));
}

function tlsFilesIn(folder: string) {
  return {
    certificate_file: join(folder, "cert.pem"),
    key_file: join(folder, "key.pem"),
    ca_file: join(folder, "ca.pem"),
  };
}

// The certificate says who this node is; a name that contradicts it would be refused by control.
async function nodeName(config: Config): Promise<string> {
  const certified = await certifiedName(config);
  const name = config.node ?? certified ?? Deno.hostname().split(".")[0] ?? "";
  if (!IDENTITY_NAME.test(name)) {
    throw new HeddleError(
      "invalid_input",
      `Cannot use "${name}" as this node's name: set node in agent.yaml, or --node`,
    );
  }
  if (certified !== undefined && certified !== name) {
    throw new HeddleError(
      "invalid_input",
      `Cannot be node "${name}": the certificate says "${certified}"; correct node, or issue another`,
    );
  }
  return name;
}

async function certifiedName(config: Config): Promise<string | undefined> {
  if (config.tls === undefined) return undefined;
  const { cert } = await readTlsFiles(config.tls);
  const identity = identityOfSubjectAltName(new X509Certificate(cert).subjectAltName);
  if (identity?.role !== "agent") {
    throw new HeddleError(
      "invalid_input",
      `Cannot use ${config.tls.certificate_file}: it is no agent's certificate`,
    );
  }
  return identity.name;
}

async function nvidiaSmiOf(config: Config, flag: string | undefined): Promise<string | undefined> {
  if (flag === "none") return undefined;
  return flag ?? config.nvidia_smi ?? await firstThatRuns(NVIDIA_SMI);
}

// Its help touches no driver, so that it answers also where the driver hangs.
async function firstThatRuns(paths: readonly string[]): Promise<string | undefined> {
  for (const path of paths) {
    try {
      const signal = AbortSignal.timeout(HELP_MS_MAX);
      await new Deno.Command(path, { args: ["-h"], clearEnv: true, signal }).output();
      return path;
    } catch {
      // Not there, or not allowed.
    }
  }
  return undefined;
}

async function printInventory(
  options: AgentOptions,
  flags: ProgramFlags,
  stop: AbortSignal,
): Promise<void> {
  const form = flags.extra["inventory"];
  if (form !== "json" && form !== "table") {
    throw new HeddleError("invalid_input", `Cannot use --inventory ${form}: want json or table`);
  }
  const { capture, replay } = flags.extra;
  const inventory = await inspect(options, {
    ...(capture === undefined ? {} : { capture }),
    ...(replay === undefined ? {} : { replay }),
  }, stop);
  const text = form === "json"
    ? `${toJsonString(InventorySchema, inventory, { prettySpaces: 2 })}\n`
    : inventoryTable(inventory);
  print(text);
}

function print(text: string): void {
  for (let bytes = new TextEncoder().encode(text); bytes.length > 0;) {
    bytes = bytes.subarray(Deno.stdout.writeSync(bytes));
  }
}
