/** What one look at a part between this terminal and a served token found. */
export interface Check {
  readonly name: string;
  readonly state: "ok" | "warning" | "failed";
  readonly detail: string;
  /** What to do; empty when there is nothing to do. */
  readonly next: string;
}

export function ok(name: string, detail: string): Check {
  return { name, state: "ok", detail, next: "" };
}

export function warning(name: string, detail: string, next: string): Check {
  return { name, state: "warning", detail, next };
}

export function failed(name: string, detail: string, next: string): Check {
  return { name, state: "failed", detail, next };
}
