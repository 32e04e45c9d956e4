/**
 * The Responses API lets a request refer to what a server keeps: an earlier answer, a conversation,
 * work in the background. An engine keeps such things in the memory of one process, for whoever
 * knows the id. A router that sends the next request to another replica would have it answered
 * without its history, so requests that need one are refused and nothing is kept.
 */
import { refuse } from "../request/outcome.ts";

export type StateRefusal = ReturnType<typeof refuse>;

/** The refusal for a request that needs a state; undefined for one that brings all it needs. */
export function needsState(read: (key: string) => unknown): StateRefusal | undefined {
  if (present(read("previous_response_id"))) {
    return refuse({
      reason: "response_not_found",
      param: "previous_response_id",
      message: "There is no such response: none is kept here. Send the whole conversation in input",
    });
  }
  if (present(read("conversation"))) {
    return unsupported("conversation", "No conversation is kept here: send all of it in input");
  }
  if (present(read("background"))) {
    return unsupported(
      "background",
      "There is no work in the background here: leave background out, and stream the answer",
    );
  }
  if (present(read("prompt"))) {
    return unsupported("prompt", "No prompt is kept here: send its text in instructions and input");
  }
  if (holdsReference(read("input"))) {
    return unsupported("input", "No item is kept here: send it whole instead of an item_reference");
  }
  return undefined;
}

function holdsReference(input: unknown): boolean {
  return Array.isArray(input) &&
    input.some((item) =>
      typeof item === "object" && item !== null && "type" in item && item.type === "item_reference"
    );
}

function unsupported(param: string, message: string): StateRefusal {
  return refuse({ reason: "invalid_request", param, message });
}

function present(value: unknown): boolean {
  return value !== undefined && value !== null && value !== false;
}
