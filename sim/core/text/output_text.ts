/** The text of a growing answer: what may be sent now, what is held back, and where a stop string ends it. */

export interface OutputTextOptions {
  readonly stop: readonly string[];
  /** Whether the stop string itself is part of the answer. */
  readonly includeStop: boolean;
}

export interface TextDelta {
  readonly text: string;
  /** The stop string that ended the answer, if one did. */
  readonly stoppedBy?: string;
}

/**
 * Collects token texts. A tail that could be the start of a stop string is held back until it is not, so that a
 * client never sees part of one; `flush` gives it out when the answer ends for another reason.
 */
export class OutputText {
  readonly #stop: readonly string[];
  readonly #includeStop: boolean;
  #held = "";

  constructor(options: OutputTextOptions) {
    this.#stop = options.stop.filter((text) => text !== "");
    this.#includeStop = options.includeStop;
  }

  push(text: string): TextDelta {
    if (this.#stop.length === 0) return { text };
    const all = this.#held + text;
    const hit = this.#earliest(all);
    if (hit !== undefined) {
      this.#held = "";
      const end = hit.at + (this.#includeStop ? hit.text.length : 0);
      return { text: all.slice(0, end), stoppedBy: hit.text };
    }
    const keep = this.#heldLength(all);
    this.#held = all.slice(all.length - keep);
    return { text: all.slice(0, all.length - keep) };
  }

  flush(): string {
    const text = this.#held;
    this.#held = "";
    return text;
  }

  #earliest(all: string): { at: number; text: string } | undefined {
    let first: { at: number; text: string } | undefined;
    for (const text of this.#stop) {
      const at = all.indexOf(text);
      if (at >= 0 && (first === undefined || at < first.at)) first = { at, text };
    }
    return first;
  }

  #heldLength(all: string): number {
    let longest = 0;
    for (const text of this.#stop) {
      for (let length = Math.min(text.length - 1, all.length); length > longest; length -= 1) {
        if (all.endsWith(text.slice(0, length))) longest = length;
      }
    }
    return longest;
  }
}
