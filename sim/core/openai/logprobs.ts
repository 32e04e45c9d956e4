/** Plausible log probabilities: invented, the same for the same token at the same place, and ordered. */
import { hash32 } from "../text/random.ts";
import { textOf } from "../text/tokenizer.ts";
import { wordId } from "../text/tokenizer.ts";
import { WORDS } from "../text/words.ts";

interface TokenLogprob {
  readonly token: string;
  readonly logprob: number;
  readonly bytes: readonly number[];
}

const utf8 = new TextEncoder();

function described(token: string, logprob: number): TokenLogprob {
  return { token, logprob, bytes: [...utf8.encode(token)] };
}

function chosenLogprob(token: number, position: number): number {
  return -(1 + hash32([token, position]) % 900) / 1000;
}

/** The chosen token first, then `count - 1` others, each less likely than the one before. */
function ranked(token: number, position: number, count: number): TokenLogprob[] {
  let logprob = chosenLogprob(token, position);
  const list = [described(textOf(token), logprob)];
  for (let rank = 1; rank < count; rank += 1) {
    const word = WORDS[(hash32([token, position]) + rank) % WORDS.length] ?? "the";
    logprob -= 0.5 + (hash32([token, position, rank]) % 1000) / 1000;
    list.push(described(textOf(wordId(word, { capital: false })), logprob));
  }
  return list;
}

export interface PlacedToken {
  readonly token: number;
  /** 0-based place in the answer. */
  readonly position: number;
}

/** The `logprobs` member of a chat choice. */
export function chatLogprobs(tokens: readonly PlacedToken[], topCount: number): object {
  return {
    content: tokens.map(({ token, position }) => ({
      ...described(textOf(token), chosenLogprob(token, position)),
      top_logprobs: ranked(token, position, topCount).slice(0, topCount),
    })),
  };
}

/** The `logprobs` member of a completion choice; `textOffset` is where the first token's text starts. */
export function completionLogprobs(
  tokens: readonly PlacedToken[],
  topCount: number,
  textOffset: number,
): object {
  let offset = textOffset;
  const offsets = tokens.map(({ token }) => {
    const start = offset;
    offset += textOf(token).length;
    return start;
  });
  return {
    text_offset: offsets,
    token_logprobs: tokens.map(({ token, position }) => chosenLogprob(token, position)),
    tokens: tokens.map(({ token }) => textOf(token)),
    top_logprobs: tokens.map(({ token, position }) =>
      Object.fromEntries(
        ranked(token, position, Math.max(1, topCount)).map((one) => [one.token, one.logprob]),
      )
    ),
  };
}
