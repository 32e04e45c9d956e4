/** Which launcher the configuration wants. */
import { HeddleError } from "@heddle/proto/error";
import { ENGINE_HOME } from "../../core/systemd/engine_unit.ts";
import type { Launcher, LiveProcess } from "./launcher.ts";
import { ProcessLauncher } from "./process.ts";
import { SystemdLauncher } from "./systemd.ts";

export type LauncherKind = "process" | "systemd";

export interface LauncherOptions {
  readonly kind: LauncherKind;
  readonly stateDirectory: string;
  /** Absolute path of heddle-shim. */
  readonly shim: string;
  /** The user that engines run as where they are units. */
  readonly user: string;
}

/**
 * The launcher. Throws `failed_precondition` when engines of the other kind still run: nobody would
 * watch them, and others would be started on their GPUs.
 */
export async function openLauncher(options: LauncherOptions): Promise<Launcher> {
  const { kind } = options;
  const other = kind === "systemd" ? "process" : "systemd";
  const [left] = await livingOf(make({ ...options, kind: other }), other);
  if (left !== undefined) {
    throw new HeddleError(
      "failed_precondition",
      `Cannot use launcher ${kind}: an engine that launcher ${other} started still runs, as pid ` +
        `${left.pid}. Set launcher back to ${other}, run heddle-agent --stop-engines yes, and change it then`,
    );
  }
  return make(options);
}

/** HOME of what a launcher starts; undefined where that is a folder of the agent's own. */
export function homeOf(kind: LauncherKind): string | undefined {
  return kind === "systemd" ? ENGINE_HOME : undefined;
}

function make({ kind, stateDirectory, shim, user }: LauncherOptions): Launcher {
  return kind === "systemd"
    ? new SystemdLauncher({ stateDirectory, shim, user })
    : new ProcessLauncher({ stateDirectory, shim });
}

async function livingOf(
  launcher: Launcher,
  kind: LauncherKind,
): Promise<readonly LiveProcess[]> {
  try {
    return await launcher.list();
  } catch (error) {
    // A machine without systemd has no units. The shim is there on every machine.
    if (kind === "systemd") return [];
    throw error;
  }
}
