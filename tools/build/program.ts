/** The programs that a release holds. */

export interface Program {
  /** Folder of the program and name of its permission set. */
  readonly room: string;
  /** What it is called in bin/. */
  readonly name: string;
  /** What its launcher says that it starts. */
  readonly what: string;
  /**
   * How the environment changes which files it may touch: `state` by HEDDLE_STATE and HEDDLE_READ,
   * `ctl` by where the operator's configuration is.
   */
  readonly moves: "state" | "ctl" | "nothing";
  /** Whether HEDDLE_NVIDIA_SMI names what it may run in the place of the usual nvidia-smi. */
  readonly runsNvidiaSmi: boolean;
}

export const PROGRAMS: readonly Program[] = [
  { ...named("agent"), what: "the agent", moves: "state", runsNvidiaSmi: true },
  { ...named("control"), what: "control", moves: "state", runsNvidiaSmi: false },
  { ...named("router"), what: "the router", moves: "state", runsNvidiaSmi: false },
  { ...named("sim"), what: "the simulated engine", moves: "nothing", runsNvidiaSmi: false },
  {
    room: "ctl",
    name: "heddle",
    what: "ctl, the operator's command line,",
    moves: "ctl",
    runsNvidiaSmi: false,
  },
];

function named(room: string): Pick<Program, "room" | "name"> {
  return { room, name: `heddle-${room}` };
}
