/** Writes down when a problem of the node appears, and when it is over. */
import { logger } from "@heddle/common/log";
import type { Problem } from "@heddle/proto/gen/types";

const log = logger("agent", "hardware");

/** What has problems: the node, or a part of it. */
export interface Troubled {
  /** "node", "GPU 3", "mlx5_0:1". */
  readonly part: string;
  readonly problems: readonly Pick<Problem, "reason" | "detail" | "remedy">[];
}

/** Passes on what is to be written: a message, and what it is about. */
export type Write = (message: string, about: Readonly<Record<string, string>>) => void;

/** Written down already by whoever found them. */
const TOLD: ReadonlySet<string> = new Set([
  "engine_not_working",
  "state_corrupt",
  "state_unreadable",
]);

export class ProblemLog {
  readonly #appeared: Write;
  readonly #over: Write;
  #known: ReadonlyMap<string, string> = new Map();

  constructor(
    appeared: Write = (message, about) => log.warning(message, about),
    over: Write = (message, about) => log.info(message, about),
  ) {
    this.#appeared = appeared;
    this.#over = over;
  }

  /** Everything that is wrong now. A detail that changes is no new problem. */
  tell(all: readonly Troubled[]): void {
    const now = new Map<string, string>();
    for (const { part, problems } of all) {
      for (const { reason, detail, remedy } of problems) {
        if (TOLD.has(reason)) continue;
        // Of the node there may be several of one kind, which only their words tell apart.
        const key = part === "node"
          ? `${part} ${reason} ${withoutNumbers(detail)}`
          : `${part} ${reason}`;
        if (now.has(key)) continue;
        now.set(key, `${part}: ${reason}`);
        if (!this.#known.has(key)) this.#appeared(detail, { part, reason, remedy });
      }
    }
    for (const [key, words] of this.#known) {
      if (!now.has(key)) this.#over("A problem is over", { what: words });
    }
    this.#known = now;
  }
}

function withoutNumbers(text: string): string {
  return text.replaceAll(/\d+/g, "#");
}
