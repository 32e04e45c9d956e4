/** Steady traffic from several clients at once, with an exact account of how each request ended. */

export interface Ending {
  /** "ok", or what went wrong. */
  readonly kind: "ok" | "refused" | "cut" | "error_event" | "no_end";
  readonly detail: string;
  /** True when content had come before it ended. */
  readonly hadContent: boolean;
  /** Events that told of an error. */
  readonly errorEvents: number;
  /** True when `[DONE]` came, which says that all is well. */
  readonly done: boolean;
}

export interface Traffic {
  readonly endings: readonly Ending[];
  /** Resolves when every client has finished its last request. */
  stop(): Promise<readonly Ending[]>;
}

/** Starts `clients` loops of streamed chat requests, each a fresh request after the last. */
export function startTraffic(
  openaiUrl: string,
  options: { clients: number; model: string; maxTokens: number },
): Traffic {
  const endings: Ending[] = [];
  let stopped = false;
  const loops = Array.from({ length: options.clients }, async (_, index) => {
    for (let turn = 0; !stopped; turn++) {
      endings.push(
        await streamOnce(openaiUrl, { ...options, prompt: `client ${index}, turn ${turn}` }),
      );
    }
  });
  return {
    endings,
    async stop() {
      stopped = true;
      await Promise.all(loops);
      return endings;
    },
  };
}

/** One streamed chat request, read to its end as bytes. */
export async function streamOnce(
  openaiUrl: string,
  options: { model: string; maxTokens: number; prompt: string },
): Promise<Ending> {
  let text = "";
  const ending = (kind: Ending["kind"], detail: string): Ending => ({
    kind,
    detail,
    hadContent: /"content":\s*"[^"]/.test(text),
    errorEvents: text.match(/^data: \{"error":/gm)?.length ?? 0,
    done: /^data: \[DONE\]$/m.test(text),
  });
  try {
    const response = await fetch(`${openaiUrl}/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({
        model: options.model,
        max_tokens: options.maxTokens,
        ignore_eos: true,
        stream: true,
        messages: [{ role: "user", content: options.prompt }],
      }),
    });
    if (!response.ok || response.body === null) {
      return ending("refused", `${response.status} ${await response.text()}`);
    }
    for await (const part of response.body.pipeThrough(new TextDecoderStream())) text += part;
  } catch (error) {
    const kind = text.includes('"error"') ? "error_event" : "cut";
    return ending(kind, `${error}: ${text.slice(-300)}`);
  }
  if (text.includes('"error"')) return ending("error_event", text.slice(-300));
  const finished = /"finish_reason":\s*"/.test(text) && text.trimEnd().endsWith("data: [DONE]");
  return finished ? ending("ok", "") : ending("no_end", text.slice(-300));
}
