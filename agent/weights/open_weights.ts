/** Puts the parts of fetching together as the configuration wants them. */
import { join } from "node:path";
import { parseSizeBytes } from "@heddle/common/duration";
import { fetchUnits, tokenPathOf } from "../core/systemd/fetch_unit.ts";
import { unitOf } from "../core/systemd/engine_unit.ts";
import { OWN_FOLDER } from "../core/weights/own_name.ts";
import type { Launcher } from "../edge/launcher/launcher.ts";
import { ProcessLauncher } from "../edge/launcher/process.ts";
import { SystemdLauncher } from "../edge/launcher/systemd.ts";
import { ProgramRuns } from "../programs/program_runs.ts";
import { FETCH } from "./fetch_language.ts";
import { NodeWeights } from "./node_weights.ts";
import type { WeightsConfig } from "./weights_config.ts";

export interface OpenWeightsOptions {
  readonly config: WeightsConfig;
  readonly launcher: "process" | "systemd";
  readonly stateDirectory: string;
  /** The first folder in which weights are looked for: what is fetched goes below it. */
  readonly modelDir: string;
  readonly shim: string;
  /** Absolute path of heddle-fetch, where the configuration names none. */
  readonly program: string;
  readonly makeHandle: (name: string) => string;
  readonly now: () => number;
  readonly onChange: () => void;
}

export function openWeights(options: OpenWeightsOptions): NodeWeights {
  const { config, modelDir, stateDirectory, now, onChange } = options;
  const into = join(modelDir, OWN_FOLDER);
  const folder = join(stateDirectory, "fetches");
  const units = fetchUnits({ into, group: config.group, tokenFile: config.token_file });
  const isUnit = options.launcher === "systemd";
  const launcher: Launcher = isUnit
    ? new SystemdLauncher({
      stateDirectory: folder,
      shim: options.shim,
      user: config.user,
      kind: units,
    })
    : new ProcessLauncher({ stateDirectory: folder, shim: options.shim });
  const tokenOf = (handle: string) =>
    config.token_file === undefined
      ? undefined
      : isUnit
      ? tokenPathOf(unitOf(units, handle))
      : config.token_file;
  const runs = new ProgramRuns({
    language: FETCH,
    launcher,
    folder,
    program: config.program ?? options.program,
    makeHandle: options.makeHandle,
    settingsOf: (handle) => {
      const token = tokenOf(handle);
      return token === undefined ? {} : { token_file: token };
    },
    environmentOf: (handle) => ({
      PATH: "/usr/local/bin:/usr/bin:/bin",
      // What it says at its end becomes part of a message.
      NO_COLOR: "1",
      ...config.env,
      HEDDLE_FETCH_INTO: into,
      HEDDLE_FETCH_READ: [tokenOf(handle), config.ca_file].filter((path) => path !== undefined)
        .join(","),
    }),
  });
  const bandwidth = config.bandwidth === undefined ? undefined : parseSizeBytes(config.bandwidth);
  return new NodeWeights({
    runs,
    into,
    now,
    onChange,
    settings: {
      hub: config.hub,
      connections: config.connections,
      reserve_bytes: parseSizeBytes(config.reserve) ?? 0,
      ...(config.ca_file === undefined ? {} : { ca_file: config.ca_file }),
      ...(bandwidth === undefined ? {} : { bytes_per_second: bandwidth }),
    },
  });
}
