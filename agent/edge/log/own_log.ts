/** The agent's own log, as far back as it is kept in memory: for those who cannot log in to the node. */
import { tapLog } from "@heddle/common/log";
import { delay } from "@heddle/common/task";

const LINES_MAX = 2_000;
const FOLLOW_POLL_MS = 200;

export class OwnLog {
  readonly #lines: string[] = [];
  /** Number of the line that comes after the last one. */
  #next = 0;
  readonly #untap: () => void;

  constructor() {
    this.#untap = tapLog((line) => {
      this.#lines.push(line.trimEnd());
      this.#next++;
      if (this.#lines.length > LINES_MAX) this.#lines.shift();
    });
  }

  /** The last `count` lines, oldest first. */
  tail(count: number): readonly string[] {
    return count === 0 ? [] : this.#lines.slice(-count);
  }

  /** The last `count` lines and then what follows, until `signal` aborts. */
  async *follow(count: number, signal: AbortSignal): AsyncGenerator<readonly string[]> {
    let at = this.#next - Math.min(count, this.#lines.length);
    while (!signal.aborted) {
      const fresh = this.#next - at;
      // What was pushed out before it was read is lost to this reader.
      if (fresh > 0) yield this.#lines.slice(-Math.min(fresh, this.#lines.length));
      at += fresh;
      await delay(FOLLOW_POLL_MS, signal);
    }
  }

  [Symbol.dispose](): void {
    this.#untap();
  }
}
