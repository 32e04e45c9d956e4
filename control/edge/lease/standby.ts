/** What a control says that does not lead: that it stands by, and who leads. */
import { HeddleError } from "@heddle/proto/error";
import type { Standing } from "./elector.ts";

/**
 * To programs it is `unavailable`: agents and routers try the next control at once. To operators it
 * is `failed_precondition`: this control is there and well, and they should ask another.
 */
export type RefusalCode = "unavailable" | "failed_precondition";

/** What a standby answers to everything but a question for its version. `name` is its own. */
export function refusal(name: string, standing: Standing, code: RefusalCode): HeddleError {
  return new HeddleError(code, `Control "${name}" stands by: ${whoLeads(standing)}`);
}

/** In words, e.g. `control "b" at 10.0.0.2:9090 leads`. */
export function whoLeads({ leading, leader, away }: Standing): string {
  if (leading) return "it is about to lead and reads its store";
  if (away !== undefined) {
    return `its store does not answer, so it does not know who leads (${away})`;
  }
  if (leader === undefined) return "it does not know yet who leads";
  const at = leader.address === "" ? "" : ` at ${leader.address}`;
  return `control "${leader.name}"${at} leads`;
}
