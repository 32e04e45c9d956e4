/** What has come of each choice of one answer so far. */
import type { EngineOutput, Finish } from "../engine/engine.ts";
import type { PlacedToken } from "./logprobs.ts";

/** One choice's state. */
export interface Choice {
  readonly index: number;
  text: string;
  readonly tokens: PlacedToken[];
  /** Tokens whose text has not been sent: it is part of a stop string, or empty. */
  unsent: PlacedToken[];
  finish: Finish | undefined;
}

/** The choices of one request, by the ids of their sequences, in order. */
export class Choices {
  readonly #byId: ReadonlyMap<string, Choice>;

  constructor(sequenceIds: readonly string[]) {
    this.#byId = new Map(
      sequenceIds.map((id, index): [string, Choice] => [
        id,
        { index, text: "", tokens: [], unsent: [], finish: undefined },
      ]),
    );
  }

  get all(): readonly Choice[] {
    return [...this.#byId.values()];
  }

  /** Adds an output to its choice and returns that choice. */
  push(output: EngineOutput): Choice {
    const choice = this.#byId.get(output.id);
    if (choice === undefined) throw new Error(`no choice of this answer has id ${output.id}`);
    if (output.token !== undefined) {
      const placed = { token: output.token, position: choice.tokens.length };
      choice.tokens.push(placed);
      choice.unsent.push(placed);
    }
    choice.text += output.text;
    choice.finish = output.finish;
    return choice;
  }
}

/** The tokens to report with the text that is sent now. */
export function takeUnsent(choice: Choice): readonly PlacedToken[] {
  const tokens = choice.unsent;
  choice.unsent = [];
  return tokens;
}
