/** What an engine answers where a case does not say: the least that its path allows. */
import type { Upstream } from "../case_schema.ts";

const USAGE = { prompt_tokens: 11, completion_tokens: 4, total_tokens: 15 };
const CHOICE = { index: 0, finish_reason: "stop" };

const BODIES: Readonly<Record<string, unknown>> = {
  "/v1/chat/completions": {
    object: "chat.completion",
    choices: [{ ...CHOICE, message: { role: "assistant", content: "1 2 3" } }],
    usage: USAGE,
  },
  "/v1/completions": {
    object: "text_completion",
    choices: [{ ...CHOICE, text: "1 2 3" }],
    usage: USAGE,
  },
  "/v1/responses": {
    id: "resp_fx2",
    object: "response",
    status: "completed",
    output: [],
    usage: { input_tokens: 11, output_tokens: 4, total_tokens: 15 },
  },
  "/v1/messages": {
    type: "message",
    role: "assistant",
    content: [{ type: "text", text: "1 2 3" }],
    stop_reason: "end_turn",
    usage: { input_tokens: 11, output_tokens: 4 },
  },
  "/v1/audio/transcriptions": { text: "one two three" },
};

export function defaultAnswer(path: string): Upstream {
  return {
    status: 200,
    headers: {},
    body: BODIES[path.replace(/\?.*$/, "")] ?? {},
    cuts: "none",
    gap_ms: 0,
    first_byte_delay_ms: 0,
    end: "close",
  };
}
