/** The bodies of /tokenize and /detokenize. */
import { z } from "zod";
import { messageSchema, renderPrompt } from "../chat/prompt.ts";
import { toolSchema } from "../chat/tools.ts";
import { decode, encode, inVocabulary, textOf } from "../text/tokenizer.ts";
import { parseBody } from "./body.ts";
import { resolveName, type ServedModel } from "./model.ts";
import { RequestError } from "./request_error.ts";

const tokenizeSchema = z.looseObject({
  model: z.string().nullish(),
  prompt: z.string().nullish(),
  messages: z.array(messageSchema).min(1).nullish(),
  tools: z.array(toolSchema).nullish(),
  add_generation_prompt: z.boolean().nullish(),
  return_token_strs: z.boolean().nullish(),
});

/** Counts a text or a conversation exactly as its completion would. */
export function tokenize(model: ServedModel, text: string): object {
  const body = parseBody(tokenizeSchema, text);
  resolveName(model, body.model);
  const prompt = body.messages === null || body.messages === undefined
    ? body.prompt
    : renderPrompt(body.messages, {
      tools: body.tools ?? [],
      imagesMax: model.imagesMax,
      generationPrompt: body.add_generation_prompt ?? true,
    });
  if (prompt === null || prompt === undefined) {
    throw new RequestError(400, "Either `prompt` or `messages` must be given.", "prompt");
  }
  const tokens = encode(prompt);
  return {
    count: tokens.length,
    max_model_len: model.contextTokensMax,
    tokens,
    token_strs: body.return_token_strs === true ? tokens.map(textOf) : null,
  };
}

const detokenizeSchema = z.looseObject({
  model: z.string().nullish(),
  tokens: z.array(z.int().nonnegative()),
});

/** The text of token ids. */
export function detokenize(model: ServedModel, text: string): object {
  const body = parseBody(detokenizeSchema, text);
  resolveName(model, body.model);
  for (const id of body.tokens) {
    if (!inVocabulary(id)) throw new RequestError(400, `Token id ${id} is out of vocabulary`);
  }
  return { prompt: decode(body.tokens) };
}
