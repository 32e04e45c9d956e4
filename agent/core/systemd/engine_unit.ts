/**
 * The transient unit that one process of an engine runs as. Its name is its mark: whatever is called
 * like that is ours, whoever started it. What it may do is decided here; systemd holds it to that.
 */
import { EXIT_RECORD_PLACE, EXIT_RECORDER } from "./exit_record.ts";

const SUFFIX = ".service";

/** Stopping it stops every engine of the machine. */
const SLICE = "heddle-engines.slice";

/** What an engine has as HOME and starts in: systemd makes it and gives it to the engine's user. */
export const ENGINE_HOME = "/var/lib/heddle/engine-home";
const ENGINE_HOME_STATE = "heddle/engine-home";

/** From SIGTERM to SIGKILL when systemd itself stops an engine, as it does at shutdown. */
const STOP_SECONDS = 60;

/**
 * What systemd and a login would add to the environment. An engine gets what it was given and
 * nothing else; but what is unset is unset whoever set it, so names it was given are left out.
 */
const ADDED_VARIABLES = [
  "CACHE_DIRECTORY",
  "HOME",
  "INVOCATION_ID",
  "JOURNAL_STREAM",
  "LANG",
  "LC_ALL",
  "LOGNAME",
  "MEMORY_PRESSURE_WATCH",
  "MEMORY_PRESSURE_WRITE",
  "PATH",
  "SHELL",
  "STATE_DIRECTORY",
  "SYSTEMD_EXEC_PID",
  "USER",
];

/**
 * Device nodes that engines open, by the kernel's names for them: a rule for a path would be void
 * when the node appears later. Beside NVIDIA's and RDMA's own: /dev/dxg of WSL, Jetson's, GDRCopy's.
 */
const DEVICES = [
  "char-nvidia*",
  "char-infiniband*",
  "char-dxg",
  "char-nvhost*",
  "char-nvmap",
  "char-gdrdrv",
  "/dev/infiniband/rdma_cm",
];

/** What a launcher starts: what its units are called, and what they are held to. */
export interface UnitKind {
  /** "heddle-engine-": the mark of what is ours. */
  readonly prefix: string;
  readonly slice: string;
  /** "engine"; for people. */
  readonly what: string;
  /** Properties of every unit. */
  readonly confinement: (environment: UnitEnvironment) => readonly string[];
}

/** Who runs, and with what. */
export interface UnitEnvironment {
  readonly user: string;
  /** Names of the variables in its environment file. */
  readonly variables: readonly string[];
  readonly envFile: string;
}

/** One process, as it is to be started. */
export interface EngineUnit extends UnitEnvironment {
  readonly handle: string;
  /** "server"; for people. */
  readonly name: string;
  readonly argv: readonly string[];
  readonly logFile: string;
  readonly exitFile: string;
  /** A unit of the same shard, with which it shares /tmp: Ray keeps its sockets there. */
  readonly sibling: string | undefined;
}

/** Every unit of a kind, for `systemctl show`. */
export function unitsOf({ prefix }: UnitKind): string {
  return `${prefix}*${SUFFIX}`;
}

/** Name of the unit of a process. Throws when `handle` could name something else too. */
export function unitOf({ prefix }: UnitKind, handle: string): string {
  if (!/^[A-Za-z0-9_-]{1,200}$/.test(handle)) {
    throw new Error(`"${handle}" is no handle of a process`);
  }
  return `${prefix}${handle}${SUFFIX}`;
}

/** The handle in a unit's name; undefined when it is none of ours. */
export function handleOf({ prefix }: UnitKind, unit: string): string | undefined {
  if (!unit.startsWith(prefix) || !unit.endsWith(SUFFIX)) return undefined;
  return unit.slice(prefix.length, -SUFFIX.length);
}

/** Arguments of systemd-run that start `unit` and return once its program runs. */
export function startArguments(kind: UnitKind, unit: EngineUnit): readonly string[] {
  const properties: readonly string[] = [
    ...kind.confinement(unit),
    `StandardOutput=append:${unit.logFile}`,
    `StandardError=append:${unit.logFile}`,
    `SyslogIdentifier=${kind.prefix}${unit.handle}`,
    `BindPaths=${unit.exitFile}:${EXIT_RECORD_PLACE}`,
    `ExecStopPost=${EXIT_RECORDER.map(quoteWord).join(" ")}`,
    `TimeoutStopSec=${STOP_SECONDS}`,
    ...(unit.sibling === undefined ? [] : [`JoinsNamespaceOf=${unit.sibling}`]),
  ];
  return [
    "--quiet",
    "--no-ask-password",
    // The result is in the record; a failed unit that stayed would block its name.
    "--collect",
    "--service-type=exec",
    `--unit=${unitOf(kind, unit.handle)}`,
    `--slice=${kind.slice}`,
    `--description=Heddle ${kind.what} ${unit.handle}, ${unit.name}`,
    ...properties.map((property) => `--property=${property}`),
    "--",
    ...commandLine(unit.argv),
  ];
}

/** An engine's program that is run for its version. */
export interface ProbeUnit extends UnitEnvironment {
  readonly handle: string;
  readonly argv: readonly string[];
  /** It is killed after that. */
  readonly seconds: number;
}

/** Name of the unit that a probe of that handle runs as. */
export function probeUnitOf(handle: string): string {
  return `heddle-probe-${handle}.service`;
}

/** Arguments of systemd-run that run a program as an engine would be, and end with its exit code. */
export function probeArguments(unit: ProbeUnit): readonly string[] {
  const properties = [
    ...confinement(unit),
    `RuntimeMaxSec=${unit.seconds}`,
    "TimeoutStopSec=1",
  ];
  return [
    "--quiet",
    "--no-ask-password",
    "--collect",
    "--wait",
    "--pipe",
    `--unit=${probeUnitOf(unit.handle)}`,
    `--slice=${SLICE}`,
    "--description=Heddle asks an engine for its version",
    ...properties.map((property) => `--property=${property}`),
    "--",
    ...commandLine(unit.argv),
  ];
}

// What an engine is held to and given, whatever it is run for.
function confinement(environment: UnitEnvironment): readonly string[] {
  return [
    ...environmentOf(environment),
    `WorkingDirectory=${ENGINE_HOME}`,
    `StateDirectory=${ENGINE_HOME_STATE}`,
    "StateDirectoryMode=0700",
    "UMask=0022",
    // As everywhere else: systemd alone has programs ignore it.
    "IgnoreSIGPIPE=no",
    // SIGTERM to the engine alone, which knows how to end its workers. What is left when it has
    // ended, however it ended, is killed at once: it would hold GPUs for nobody.
    "KillMode=mixed",
    // RDMA pins what it registers, and the default fails the first collective.
    "LimitMEMLOCK=infinity",
    "LimitNOFILE=1048576",
    "LimitCORE=0",
    "OOMPolicy=stop",
    ...SANDBOX,
    "DevicePolicy=closed",
    ...DEVICES.map((device) => `DeviceAllow=${device} rw`),
  ];
}

/** Its user, and its environment: what it is given and nothing else. */
export function environmentOf({ user, envFile, variables }: UnitEnvironment): readonly string[] {
  const given = new Set(variables);
  const unset = ADDED_VARIABLES.filter((name) => !given.has(name));
  return [
    `User=${user}`,
    `EnvironmentFile=${envFile}`,
    ...(unset.length === 0 ? [] : [`UnsetEnvironment=${unset.join(" ")}`]),
  ];
}

/** Engines. */
export const ENGINES: UnitKind = {
  prefix: "heddle-engine-",
  slice: SLICE,
  what: "engine",
  confinement,
};

// systemd takes the program's own path as it is, but would replace variables in it where it is an
// argument: a path with a dollar is only ever an argument.
function commandLine(argv: readonly string[]): readonly string[] {
  const safe = argv[0]?.includes("$") === true
    ? ["/bin/sh", "-c", 'exec "$@"', "sh", ...argv]
    : argv;
  return safe.map(escapeDollars);
}

/**
 * Not PrivateDevices, which hides GPUs, nor MemoryDenyWriteExecute, which forbids what compiles
 * kernels. The engine's user owns nothing, so what an operator gives to it on purpose stays writable.
 */
const SANDBOX = [
  "NoNewPrivileges=yes",
  "CapabilityBoundingSet=CAP_IPC_LOCK CAP_SYS_NICE",
  "ProtectSystem=full",
  "ProtectHome=read-only",
  "PrivateTmp=yes",
];

/** systemd replaces `$NAME` and `${NAME}` in arguments by variables; `$$` stays a dollar. */
function escapeDollars(word: string): string {
  return word.replaceAll("$", "$$$$");
}

/** One word of a command line in a property, whatever is in it. */
function quoteWord(word: string): string {
  const escaped = escapeDollars(word).replaceAll(/[\\"]/g, "\\$&").replaceAll("\n", "\\n");
  return `"${escaped}"`;
}
