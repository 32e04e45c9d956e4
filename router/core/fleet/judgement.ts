/** What one try at an endpoint says of the endpoint. */
export interface Judgement {
  /**
   * `success`: it answered well, or refused a bad request with reason. `connect`: nothing took the
   * call. `fault`: it took the call and failed. `busy`: it says that it is full.
   */
  readonly kind: "success" | "connect" | "fault" | "busy";
  /** What it asked for in Retry-After; 0 without. */
  readonly retryAfterMs: number;
}

export const WORKS: Judgement = { kind: "success", retryAfterMs: 0 };
