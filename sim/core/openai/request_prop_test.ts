import assert from "node:assert/strict";
import fc from "fast-check";
import { chatJob } from "../chat/request.ts";
import { completionJob } from "./completion.ts";
import { embeddingJob } from "../pooling/embedding.ts";
import type { Job, RequestHead } from "./job.ts";
import type { ServedModel } from "./model.ts";
import { RequestError } from "./request_error.ts";
import { detokenize, tokenize } from "./tokenize.ts";

const MODEL: ServedModel = {
  root: "org/weights",
  names: ["tiny", "alias"],
  contextTokensMax: 512,
  seed: 1,
  answerTokensMin: 8,
  answerTokensMax: 16,
  embeddingDimensions: 8,
  logprobsMax: 5,
  choicesMax: 4,
  imagesMax: 1,
  autoToolChoice: true,
  promptTokensDetails: false,
  forceIncludeUsage: false,
  generates: true,
  embeds: true,
};
const HEAD: RequestHead = { id: "chatcmpl-x", key: "7", created: 0 };

/** A body that is right but for a few members, which may hold anything. */
const MEMBERS = [
  ...["model", "messages", "prompt", "input", "stream", "stream_options", "max_tokens", "n"],
  ...["max_completion_tokens", "stop", "stop_token_ids", "seed", "logprobs", "top_logprobs"],
  ...["tools", "tool_choice", "response_format", "echo", "suffix", "encoding_format", "tokens"],
  ...["dimensions", "priority", "cache_salt", "min_tokens", "temperature", "sim_fault", "top_p"],
];
const text = fc.string({ unit: "grapheme", maxLength: 300 });
const part = fc.record({
  type: fc.constantFrom("text", "image_url", "input_audio", "refusal"),
  text: fc.option(text),
});
const message = fc.record({
  role: fc.constantFrom("system", "developer", "user", "assistant", "tool"),
  content: fc.oneof(text, fc.array(part, { maxLength: 3 }), fc.constant(null)),
});
const right = fc.record({
  model: fc.constantFrom("tiny", "alias"),
  messages: fc.array(message, { minLength: 1, maxLength: 4 }),
  prompt: fc.oneof(text, fc.array(text, { maxLength: 3 }), fc.array(fc.nat(), { maxLength: 9 })),
  input: fc.oneof(text, fc.array(text, { maxLength: 3 })),
  tokens: fc.array(fc.nat(), { maxLength: 9 }),
  stream: fc.boolean(),
});
const wrong = fc.dictionary(fc.constantFrom(...MEMBERS), fc.jsonValue(), { maxKeys: 3 });
const bodies = fc.oneof(
  fc.tuple(right, wrong).map(([body, members]) => JSON.stringify({ ...body, ...members })),
  fc.jsonValue().map((value) => JSON.stringify(value)),
  fc.string(),
);

/** What `act` gives, or undefined when it refuses with a status that blames the client. */
function accepted<T>(act: () => T): T | undefined {
  try {
    return act();
  } catch (error) {
    assert.ok(error instanceof RequestError, String(error));
    assert.ok(error.status >= 400 && error.status < 500);
    assert.ok(error.message.length > 0);
    return undefined;
  }
}

function checkJob(job: Job): void {
  assert.ok(job.sequences.length > 0);
  assert.equal(new Set(job.sequences.map(({ id }) => id)).size, job.sequences.length);
  for (const sequence of job.sequences) {
    assert.ok(sequence.id.startsWith(HEAD.key));
    assert.ok(sequence.promptTokens.length > 0);
    assert.ok(sequence.promptTokens.length + sequence.tokensMax <= MODEL.contextTokensMax);
  }
}

for (const [name, read] of Object.entries({ chatJob, completionJob, embeddingJob })) {
  Deno.test(`${name}() takes or refuses any body, and takes none that cannot be run`, () => {
    let taken = 0;
    fc.assert(
      fc.property(bodies, (body) => {
        const job = accepted(() => read(MODEL, body, HEAD));
        if (job === undefined) return;
        taken += 1;
        checkJob(job);
      }),
      { numRuns: 1_500 },
    );
    assert.ok(taken > 100, `${taken} were taken`);
  });
}

Deno.test("tokenize() and detokenize() take or refuse any body", () => {
  fc.assert(
    fc.property(bodies, (body) => {
      accepted(() => tokenize(MODEL, body));
      accepted(() => detokenize(MODEL, body));
    }),
    { numRuns: 500 },
  );
});
