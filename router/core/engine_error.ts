/** Turns every form of error that engines answer into one, and says whose fault it is. */

/** An error as clients get it. `param` and `code` are null when there is nothing to say. */
export interface ApiError {
  readonly status: number;
  readonly message: string;
  readonly type: string;
  readonly param: string | null;
  readonly code: string | null;
}

/**
 * Who an engine's error speaks about. `request`: the client's request, no replica would take it.
 * `saturation`: the replica is full or still loading; another may have room. `replica`: this
 * replica failed. `router`: the router's own key or address is wrong for this replica.
 */
export type Blame = "request" | "saturation" | "replica" | "router";

export interface EngineError {
  readonly error: ApiError;
  readonly blame: Blame;
}

/** The envelope a route's clients expect. */
export type ErrorShape = "openai" | "anthropic" | "responses";

export interface EngineAnswer {
  readonly status: number;
  readonly body: Uint8Array;
  /** Texts that must not reach a client: the engine's address, its key, its model path. */
  readonly secrets?: readonly string[];
}

/** Reads a non-2xx answer, or a 2xx one whose body is an error. Never throws. */
export function readEngineError(_answer: EngineAnswer): EngineError {
  throw new Error("not built yet");
}

/**
 * Reads the error that an event's parsed data carries; `named` when the event is called "error".
 * Undefined when the data is no error.
 */
export function readInBandError(
  _data: unknown,
  _options?: { named?: boolean; secrets?: readonly string[] },
): EngineError | undefined {
  throw new Error("not built yet");
}

/** The JSON body of an error answer. */
export function errorBody(_error: ApiError, _shape: ErrorShape): string {
  throw new Error("not built yet");
}

/** One whole event that ends a stream on an error, as text with its blank line. */
export function errorEvent(_error: ApiError, _shape: ErrorShape): string {
  throw new Error("not built yet");
}
