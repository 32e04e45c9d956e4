/** The limit that stopped a request, as the answer tells it to programs. */
export interface LimitDetail {
  readonly name:
    | "concurrent_requests"
    | "requests_per_minute"
    | "tokens_per_minute"
    | "budget";
  /** Whose limit it is: "key", "project", "team" or "organisation". */
  readonly scope: string;
  readonly scope_name: string;
  /** In its own unit; of a budget, in units. */
  readonly value: number;
  /** Until there is room again; null when nobody can say, or never. */
  readonly refills_in_seconds: number | null;
}
