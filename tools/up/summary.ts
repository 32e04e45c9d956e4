/** What `up` prints when everything is ready. */
import { shellWord } from "./terminal.ts";

export interface SummaryOptions {
  readonly openaiUrl: string;
  readonly consoleUrl: string;
  readonly models: readonly string[];
  readonly state: string;
  /** Set when ctl does not find its configuration by itself. */
  readonly ctlConfig: string | undefined;
  readonly detached: boolean;
  /** How the user called Deno, for commands that can be pasted. */
  readonly deno: string;
  /** Flags that `down` needs to find this `up`. */
  readonly downFlags: string;
}

/** Plain text, ready to paste from. */
export function formatSummary(options: SummaryOptions): string {
  const { deno, openaiUrl } = options;
  const model = options.models[0] ?? "";
  const ctl = `${
    options.ctlConfig === undefined ? "" : `HEDDLE_CTL_CONFIG=${shellWord(options.ctlConfig)} `
  }${deno} task ctl`;
  const stop = options.detached
    ? `Stop it with: ${deno} task down${options.downFlags}`
    : "Ctrl-C stops everything, engines too.";
  return `
Heddle is up, serving ${options.models.join(", ")}.

  Endpoint  ${openaiUrl}  (no key needed from this machine)
  Console   ${options.consoleUrl}

  curl ${openaiUrl}/chat/completions -H 'content-type: application/json' \\
    -d '{"model": "${model}", "messages": [{"role": "user", "content": "Hello!"}]}'

  import OpenAI from "openai";
  const client = new OpenAI({ baseURL: "${openaiUrl}", apiKey: "none" });
  const stream = await client.chat.completions.create({
    model: "${model}",
    messages: [{ role: "user", content: "Hello!" }],
    stream: true,
  });
  for await (const chunk of stream) console.log(chunk.choices[0]?.delta.content ?? "");

Look around:

  ${ctl} nodes
  ${ctl} models
  ${ctl} replicas
  ${ctl} explain ${model}

Logs are in ${options.state}/logs. ${stop}
`;
}
