/** Every key that `expect` may hold, with how it is checked. */
import { CLIENT_CHECKS } from "./checks_client.ts";
import { ENGINE_CHECKS } from "./checks_engine.ts";
import { ROUTER_CHECKS } from "./checks_router.ts";
import { CaseFault, type Check, type Seen, shown } from "./seen.ts";

export const CHECKS: Readonly<Record<string, Check>> = {
  ...CLIENT_CHECKS,
  ...ENGINE_CHECKS,
  ...ROUTER_CHECKS,
};

/** What of `expect` does not hold, each in a line. */
export function failures(expect: Readonly<Record<string, unknown>>, seen: Seen): string[] {
  return Object.entries(expect).flatMap(([key, wanted]) => {
    const problem = problemWith(key, wanted, seen);
    return problem === undefined ? [] : [`${key} ${shown(wanted)}: ${problem}`];
  });
}

function problemWith(key: string, wanted: unknown, seen: Seen): string | undefined {
  const check = CHECKS[key];
  if (check === undefined) return "no check has this name";
  try {
    return check(wanted, seen);
  } catch (error) {
    if (error instanceof CaseFault || error instanceof SyntaxError) return error.message;
    throw error;
  }
}
