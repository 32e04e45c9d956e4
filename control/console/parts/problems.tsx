/** What is wrong, and what to do about it, in words. */
import type { ProblemItem } from "../../edge/console/wire.ts";

export function Problems(
  { problems, of: subject }: {
    readonly problems: readonly ProblemItem[];
    /** What they are about, e.g. "GPU 3". */
    readonly of?: string;
  },
) {
  if (problems.length === 0) return null;
  return (
    <ul class="problems">
      {problems.map(({ reason, detail, remedy }) => (
        <li key={reason + detail}>
          {subject === undefined ? "" : `${subject}: `}
          {detail || reason}
          {remedy === "" ? null : <span class="remedy">{remedy}</span>}
        </li>
      ))}
    </ul>
  );
}
