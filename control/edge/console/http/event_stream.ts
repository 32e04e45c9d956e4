/** One console's stream of events: an HTTP answer that goes on until the page is closed. */
import { HeddleError } from "@heddle/proto/error";
import type { WebResponse } from "./answer.ts";
import type { Sink } from "../live.ts";
import { type Topic, TOPICS } from "../wire.ts";

/** The collections that a page names, separated by commas. Throws `invalid_input` for one that is none. */
export function topicsOf(text: string | null): ReadonlySet<Topic> {
  const topics = new Set<Topic>();
  for (const word of (text ?? "").split(",")) {
    const topic = TOPICS.find((each) => each === word);
    if (topic === undefined) {
      const want = TOPICS.join(", ");
      throw new HeddleError("invalid_input", `Cannot follow "${word}": want some of ${want}`);
    }
    topics.add(topic);
  }
  return topics;
}

/** Begins with the first write. `onGone` is called once the page, or its connection, is gone. */
export function eventStream(
  response: WebResponse,
): { readonly sink: Sink; onGone(leave: () => void): void } {
  let waiting = 0;
  return {
    sink: {
      write(text) {
        if (!response.headersSent) {
          response.writeHead(200, { "content-type": "text/event-stream" });
        }
        const bytes = new TextEncoder().encode(text);
        waiting += bytes.length;
        response.write(bytes, () => waiting -= bytes.length);
      },
      waitingBytes: () => waiting,
      end: () => void response.end(),
    },
    onGone: (leave) => void response.on("close", leave),
  };
}
