/** The programs that a release holds. */

export interface Program {
  /** Name of its permission set. */
  readonly room: string;
  /** Folder that has its main.ts. */
  readonly folder: string;
  /** What it is called in bin/. */
  readonly name: string;
  /** What its launcher says that it starts. */
  readonly what: string;
  /**
   * How the environment changes which files it may touch: `state` by HEDDLE_STATE and HEDDLE_READ,
   * `ctl` by where the operator's configuration is, `fetch` and `install` by what their starter says,
   * `token` by HEDDLE_JOIN_TOKEN_FILE.
   */
  readonly moves: "state" | "ctl" | "fetch" | "install" | "token" | "nothing";
  /** Whether HEDDLE_NVIDIA_SMI names what it may run in the place of the usual nvidia-smi. */
  readonly runsNvidiaSmi: boolean;
  /** Whether it has commands that run once, and may use the paths that their command line names. */
  readonly namesPaths?: true;
  /** First words that another program's launcher is started for, in its place. */
  readonly hands?: { readonly words: readonly string[]; readonly to: string };
}

export const PROGRAMS: readonly Program[] = [
  {
    ...named("agent"),
    what: "the agent",
    moves: "state",
    runsNvidiaSmi: true,
    namesPaths: true,
    hands: { words: ["attach", "script"], to: "heddle-attach" },
  },
  {
    room: "attach",
    folder: "agent/attach",
    name: "heddle-attach",
    what: "the agent beside an engine that something else started",
    moves: "token",
    runsNvidiaSmi: true,
  },
  { ...named("control"), what: "control", moves: "state", runsNvidiaSmi: false },
  { ...named("router"), what: "the router", moves: "state", runsNvidiaSmi: false },
  { ...named("sim"), what: "the simulated engine", moves: "nothing", runsNvidiaSmi: false },
  {
    room: "fetch",
    folder: "agent/fetch",
    name: "heddle-fetch",
    what: "the program that fetches weights",
    moves: "fetch",
    runsNvidiaSmi: false,
  },
  {
    room: "install",
    folder: "agent/install",
    name: "heddle-install",
    what: "the program that installs engines",
    moves: "install",
    runsNvidiaSmi: false,
  },
  {
    room: "ctl",
    folder: "ctl",
    name: "heddle",
    what: "ctl, the operator's command line,",
    moves: "ctl",
    runsNvidiaSmi: false,
  },
];

function named(room: string): Pick<Program, "room" | "folder" | "name"> {
  return { room, folder: room, name: `heddle-${room}` };
}
