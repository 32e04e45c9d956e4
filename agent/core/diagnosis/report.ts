/** A diagnosis as `heddle-agent --diagnose` prints it. */
import type { Diagnosis, ProcessLog } from "./diagnose.ts";

/** Of the first errors, so many are shown: the rest is in the log. */
const ERRORS_SHOWN_MAX = 10;

/** Lines of text with a newline at the end; `redact` takes secrets out of what logs say. */
export function diagnosisReport(
  diagnosis: Diagnosis | undefined,
  logs: readonly ProcessLog[],
  redact: (line: string) => string,
): string {
  const read = logs.map(({ process, digest }) => `${process} (${digest.lineCount} lines)`);
  const lines = diagnosis === undefined ? ["Nothing in it says that an engine failed."] : [
    `Reason:   ${diagnosis.reason}`,
    `Meaning:  ${diagnosis.meaning}`,
    `To do:    ${diagnosis.remedy}`,
    ...diagnosis.alternatives.map((words) => `Or:       ${words}`),
    `Again:    ${
      diagnosis.permanent
        ? "starting again without a change ends the same way"
        : "starting again may help"
    }`,
    ...(diagnosis.said === undefined ? [] : [
      `Said by:  ${diagnosis.said.process}${
        diagnosis.said.number === undefined ? "" : `, line ${diagnosis.said.number}`
      }`,
      `          ${redact(diagnosis.said.line.trim())}`,
    ]),
  ];
  const errors = logs.flatMap(({ process, digest }) => {
    const first = digest.firstErrors.slice(0, ERRORS_SHOWN_MAX);
    return first.length === 0
      ? []
      : ["", `First errors of ${process}:`, ...first.map((line) => `  ${redact(line)}`)];
  });
  return [...lines, ...errors, "", `Read: ${read.join(", ")}`, ""].join("\n");
}
