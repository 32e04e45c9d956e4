/**
 * What a simulated request is answered with, token by token.
 *
 * An answer is decided by the engine's seed and the prompt alone, never by load or time, so that two runs, two
 * replicas with one seed, and a request before and after preemption say the same thing.
 */
import { integerBetween, type Random, randomFrom } from "./random.ts";
import { encode, END_OF_TEXT, wordId } from "./tokenizer.ts";
import { WORDS } from "./words.ts";

const SENTENCE_WORDS_MIN = 5;
const SENTENCE_WORDS_MAX = 14;
const COMMA_CHANCE = 0.1;

const LOWER_IDS: readonly number[] = WORDS.map((word) => wordId(word, { capital: false }));
const UPPER_IDS: readonly number[] = WORDS.map((word) => wordId(word, { capital: true }));
const COMMA = encode(",")[0] ?? END_OF_TEXT;
const FULL_STOP = encode(".")[0] ?? END_OF_TEXT;

export interface AnswerOptions {
  /** Decides everything after `opening`. */
  readonly seed: number;
  /** Given first, word for word. */
  readonly opening: string;
  /** Tokens before the answer ends by itself, `opening` included; 0 ends right after `opening`. */
  readonly naturalTokens: number;
}

/** A source of answer tokens with a position of its own. */
export class Answer {
  readonly #opening: readonly number[];
  readonly #random: Random;
  readonly #naturalTokens: number;
  #given = 0;
  #wordsLeft = 0;
  #sentenceStart = true;
  #sinceComma = 0;

  constructor(options: AnswerOptions) {
    this.#opening = encode(options.opening);
    this.#random = randomFrom(options.seed);
    this.#naturalTokens = Math.max(options.naturalTokens, this.#opening.length);
  }

  /** The next token: `END_OF_TEXT` once the answer is over, unless `endless` asks for more words. */
  next(endless: boolean): number {
    const position = this.#given;
    this.#given += 1;
    const opening = this.#opening[position];
    if (opening !== undefined) return opening;
    if (!endless && position >= this.#naturalTokens) return END_OF_TEXT;
    return this.#word();
  }

  #word(): number {
    if (this.#sentenceStart) {
      this.#sentenceStart = false;
      this.#sinceComma = 0;
      this.#wordsLeft = integerBetween(this.#random, SENTENCE_WORDS_MIN, SENTENCE_WORDS_MAX);
      return this.#pick(UPPER_IDS);
    }
    if (this.#wordsLeft === 0) {
      this.#sentenceStart = true;
      return FULL_STOP;
    }
    // Two punctuation marks in a row would be one token to the tokenizer, and a reader would stumble.
    if (this.#sinceComma > 1 && this.#wordsLeft > 1 && this.#random() < COMMA_CHANCE) {
      this.#sinceComma = 0;
      return COMMA;
    }
    this.#sinceComma += 1;
    this.#wordsLeft -= 1;
    return this.#pick(LOWER_IDS);
  }

  #pick(ids: readonly number[]): number {
    return ids[Math.floor(this.#random() * ids.length)] ?? FULL_STOP;
  }
}
