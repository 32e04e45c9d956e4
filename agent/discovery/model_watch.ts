/** Keeps what is known of the model directories: their room now, their files as last looked through. */

import { type FoundFile, modelFiles } from "../core/host/model_files.ts";
import type { NodeProblem } from "../core/problem.ts";
import {
  type DirectoryRoom,
  type DirectoryScan,
  readRoom,
  scanDirectory,
} from "../edge/hardware/model_dirs.ts";
import { isDue } from "../core/host/is_due.ts";
import { SingleFlight } from "./single_flight.ts";

/** A scan reads every entry, perhaps over a network, and files rarely change. */
const SCAN_AGE_MS = 60_000;

interface Directory {
  readonly path: string;
  readonly flight: SingleFlight;
  room: DirectoryRoom;
  scan: DirectoryScan;
  scannedAt: number | undefined;
  answers: boolean;
}

export class ModelWatch {
  readonly #now: () => number;
  readonly #directories: readonly Directory[];

  constructor(paths: readonly string[], now: () => number) {
    this.#now = now;
    this.#directories = [...new Set(paths)].map((path) => ({
      path,
      flight: new SingleFlight(),
      room: { freeBytes: undefined, shared: false, problems: [] },
      scan: { folders: [], problems: [] },
      scannedAt: undefined,
      answers: true,
    }));
  }

  /**
   * Reads the room of every directory, and its files when that was long ago. One that does not
   * answer within `waitMs` (a file server is away) keeps its last files, and its room is unknown.
   */
  async refresh(waitMs: number, signal: AbortSignal): Promise<void> {
    await Promise.all(this.#directories.map(async (directory) => {
      directory.answers = await directory.flight.within(
        waitMs,
        signal,
        () => this.#read(directory, signal),
      );
    }));
  }

  async #read(directory: Directory, signal: AbortSignal): Promise<void> {
    directory.room = await readRoom(directory.path);
    if (!isDue(directory.scannedAt, SCAN_AGE_MS, this.#now())) return;
    const scan = await scanDirectory(directory.path, signal);
    if (signal.aborted) return;
    directory.scan = scan;
    directory.scannedAt = this.#now();
  }

  directories(): readonly {
    readonly path: string;
    readonly freeBytes: number | undefined;
    readonly shared: boolean;
  }[] {
    return this.#directories.map(({ path, room, answers }) => ({
      path,
      freeBytes: answers ? room.freeBytes : undefined,
      shared: room.shared,
    }));
  }

  /** Weights in all directories that were looked through, by path. */
  files(): readonly FoundFile[] {
    const byPath = new Map<string, FoundFile>();
    for (const { scan } of this.#directories) {
      for (const file of modelFiles(scan.folders)) byPath.set(file.path, file);
    }
    return [...byPath.values()];
  }

  problems(): readonly NodeProblem[] {
    return this.#directories.flatMap(({ path, answers, room, scan }): NodeProblem[] => {
      if (!answers) {
        return [{
          reason: "model_dir_not_answering",
          detail: `The model directory ${path} does not answer; its files are as last seen.`,
          remedy: "Check the file server or disk behind it.",
        }];
      }
      // A directory that cannot be read says so for its room already.
      return room.problems.length > 0 ? [...room.problems] : [...scan.problems];
    });
  }
}
