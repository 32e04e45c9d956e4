/** Writes an error in the envelope that a route's clients read. */
import type { ApiError } from "./engine_error.ts";

/** The envelope a route's clients expect. */
export type ErrorShape = "openai" | "anthropic" | "responses";

/** The JSON body of an error answer. */
export function errorBody(error: ApiError, shape: ErrorShape): string {
  return JSON.stringify(
    shape === "anthropic" ? anthropic(error) : { error: openai(error) },
  );
}

/**
 * One whole event that ends a stream on an error, as text with its blank line. A Responses stream
 * that has begun ends in `response.failed`: clients hang without a terminal event.
 */
export function errorEvent(error: ApiError, shape: ErrorShape, response?: ResponseSoFar): string {
  switch (shape) {
    case "openai":
      // Without a name: official SDKs take a named error event for an ordinary one.
      return `data: ${errorBody(error, shape)}\n\n`;
    case "anthropic":
      return `event: error\ndata: ${errorBody(error, shape)}\n\n`;
    case "responses": {
      if (response !== undefined) return responseFailedEvent(error, response);
      // The documented form is flat, the live API's is nested, and clients look for either.
      const { message, param, code } = error;
      const data = { type: "error", code, message, param, error: openai(error) };
      return `event: error\ndata: ${JSON.stringify(data)}\n\n`;
    }
  }
}

/** What a Responses stream has told of its answer so far, to be told again when it fails. */
export interface ResponseSoFar {
  readonly id: string;
  readonly model: string;
  readonly createdAt: number;
  /** Of the event that is to be written. */
  readonly sequenceNumber: number;
}

function responseFailedEvent(error: ApiError, response: ResponseSoFar): string {
  const data = {
    type: "response.failed",
    sequence_number: response.sequenceNumber,
    response: {
      id: response.id,
      object: "response",
      created_at: response.createdAt,
      status: "failed",
      model: response.model,
      output: [],
      error: { code: error.code ?? error.type, message: error.message },
      incomplete_details: null,
      usage: null,
    },
  };
  return `event: response.failed\ndata: ${JSON.stringify(data)}\n\n`;
}

function openai({ message, type, param, code, limit }: ApiError) {
  return { message, type, param, code, ...(limit === undefined ? {} : { limit }) };
}

function anthropic({ message, status, limit }: ApiError) {
  const detail = limit === undefined ? {} : { limit };
  return { type: "error", error: { type: anthropicType(status), message, ...detail } };
}

/** The words of the Messages API, by status. */
function anthropicType(status: number): string {
  switch (status) {
    case 401:
      return "authentication_error";
    case 402:
      return "billing_error";
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 413:
      return "request_too_large";
    case 429:
      return "rate_limit_error";
    case 503:
    case 529:
      return "overloaded_error";
    case 408:
    case 504:
      return "timeout_error";
  }
  return status >= 500 ? "api_error" : "invalid_request_error";
}
