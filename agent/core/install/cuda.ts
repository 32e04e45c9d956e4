/** Which CUDA a driver runs, and what a build for another one needs. */

/** Drivers from which each major version of CUDA runs, by minor-version compatibility; newest first. */
const SINCE_DRIVER: readonly (readonly [cuda: number, driver: number])[] = [
  [13, 580],
  [12, 525],
  [11, 450],
];

/** What was found of a machine's driver. */
export interface Driver {
  /** As it calls itself, "580.65.06"; "" where there is none. */
  readonly driver: string;
  /** Newest major version of CUDA that it runs; undefined: none. */
  readonly cuda: number | undefined;
}

/** Newest major version of CUDA that a driver runs; undefined: none, or no driver. */
export function cudaOfDriver(driver: string): number | undefined {
  const major = Number(/^\d+/.exec(driver)?.[0] ?? Number.NaN);
  return SINCE_DRIVER.find(([, since]) => major >= since)?.[0];
}

/** "needs driver 580, the node has 550.163.01". */
export function needsDriver(cuda: number, driver: string): string {
  const since = SINCE_DRIVER.find(([version]) => version === cuda)?.[1];
  const wanted = since === undefined ? `a driver for CUDA ${cuda}` : `driver ${since}`;
  return `needs ${wanted}, the node has ${driver === "" ? "none" : driver}`;
}

/** What was seen of a node's GPUs. */
export interface DriverSeen {
  readonly driverVersion: string;
  readonly gpus: readonly unknown[];
  readonly problems: readonly { readonly reason: string; readonly detail: string }[];
}

/**
 * Version of the driver; "" on a node without GPUs. Throws where there are some, or a driver, that do
 * not answer: to take such a node for one without GPUs would install what leaves them idle.
 */
export function driverOf({ driverVersion, gpus, problems }: DriverSeen): string {
  const silent = problems.find(({ reason }) =>
    /^(?:driver|gpu|nvidia)_/.test(reason) && reason !== "nvidia_smi_missing"
  );
  if (driverVersion === "" && (gpus.length > 0 || silent !== undefined)) {
    throw new Error(`the driver does not tell its version: ${silent?.detail ?? "no answer"}`);
  }
  return driverVersion;
}
