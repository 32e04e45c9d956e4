/** A scenario: one file in scenarios/, one line in the list of main.ts. */
import type { Lab } from "./lab.ts";

export interface Scenario {
  /** What it shows, in one line. */
  readonly title: string;
  /** It has failed when it is not over by then. */
  readonly limitMs: number;
  /** Fetches what it needs from elsewhere, beforehand: in a lab there is no way out. */
  prepare?(): Promise<unknown>;
  /** Throws when what it shows is not so. Its steps go through `lab.step`. */
  run(lab: Lab): Promise<void>;
}
