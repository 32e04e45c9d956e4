/** What a diagnosis adds to a failure. */
import { type Diagnosis, diagnosisText } from "../diagnosis/diagnose.ts";
import type { Failure } from "./shard.ts";

/** A process ended by itself: what the diagnosis says is why the shard failed. */
export function explained(failure: Failure, diagnosis: Diagnosis | undefined): Failure {
  if (diagnosis === undefined) return failure;
  return {
    ...failure,
    // A word that means "unknown" tells less than what was seen.
    reason: diagnosis.reason === "unexplained" ? failure.reason : diagnosis.reason,
    message: `${failure.message}. ${diagnosisText(diagnosis)}`,
    permanent: failure.permanent || diagnosis.permanent,
  };
}

/**
 * The shard was judged already, as too late or hung, and ended for that: its log may say why. How its
 * processes ended says nothing, for that was the agent's doing.
 */
export function alsoExplained(failure: Failure, diagnosis: Diagnosis | undefined): Failure {
  if (diagnosis?.said === undefined || diagnosis.reason === "interrupted") return failure;
  const { meaning, remedy, said } = diagnosis;
  const words = diagnosis.reason === "unexplained"
    ? ""
    : ` That often means: ${meaning}. To do: ${remedy}.`;
  return {
    ...failure,
    message: `${failure.message}. The ${said.process}'s log says: ${said.line.trim()}${words}`,
  };
}
