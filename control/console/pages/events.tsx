/** What changed, what holds, and who decided it. */
import { useEffect, useState } from "preact/hooks";
import { rpc, wordsOf } from "../call.ts";
import type { Live } from "../follow.ts";
import { Notice } from "../parts/notice.tsx";
import { hrefOf } from "../route.ts";
import { byName, clockTime, duration } from "../words.ts";

/** Newest decisions of the audit trail. */
const AUDIT_MAX = 200;

interface Audit {
  readonly atMs?: string;
  readonly by?: string;
  readonly action?: string;
  readonly subject?: string;
  readonly reason?: string;
}

export function Events({ live }: { readonly live: Live }) {
  const events = [...live.events].sort(([a], [b]) => a < b ? 1 : -1);
  return (
    <>
      <header class="page">
        <h1>Events</h1>
      </header>
      <h2>What changed since this control began to lead</h2>
      {events.length === 0 ? <p class="quiet">Nothing.</p> : (
        <table class="events">
          <tbody>
            {events.map(([id, { atMs, kind, subject, text, bad, next }]) => (
              <tr key={id} class={bad ? "bad" : ""}>
                <td class="time">{clockTime(atMs)}</td>
                <td>
                  {`${kind} `}
                  {kind === "node" || kind === "model"
                    ? <a href={hrefOf(`${kind}s`, subject)}>{subject}</a>
                    : subject}
                </td>
                <td>
                  {text}
                  {next !== "" && <div class="quiet">{next}</div>}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      <h2>Decisions that hold</h2>
      <Decisions live={live} />
      <h2>Who decided what</h2>
      <AuditTrail newest={[...live.decisions.keys()].join() + [...live.events.keys()].at(-1)} />
    </>
  );
}

function Decisions({ live }: { readonly live: Live }) {
  const decisions = [...live.decisions].sort(([a], [b]) => byName(a, b));
  if (decisions.length === 0) return <p class="quiet">None.</p>;
  return (
    <table>
      <tbody>
        {decisions.map(([key, { kind, subject, value, by, reason, at, orphaned }]) => (
          <tr key={key}>
            <td>{`${kind.replaceAll("_", " ")} ${subject} ${value}`}</td>
            <td>{by}</td>
            <td>{at === undefined ? "" : `for ${duration(live.now - at)}`}</td>
            <td>{orphaned ? `${reason} (it is not there any more)` : reason}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function AuditTrail({ newest }: { readonly newest: string }) {
  const [found, setFound] = useState<readonly Audit[] | string>([]);
  useEffect(() => {
    let stale = false;
    rpc<{ readonly records?: readonly Audit[] }>("ListAudit", { limit: AUDIT_MAX }).then(
      ({ records = [] }) => stale || setFound(records),
      (error: unknown) => stale || setFound(wordsOf(error)),
    );
    return () => {
      stale = true;
    };
  }, [newest]);
  if (typeof found === "string") return <Notice tone="bad">{found}</Notice>;
  if (found.length === 0) return <p class="quiet">Nobody has decided anything.</p>;
  return (
    <table aria-label="Audit trail">
      <thead>
        <tr>
          <th>When</th>
          <th>Who</th>
          <th>What</th>
          <th>Why</th>
        </tr>
      </thead>
      <tbody>
        {found.map(({ atMs = "0", by = "", action = "", subject = "", reason = "" }, index) => (
          <tr key={index}>
            <td class="time">{clockTime(Number(atMs))}</td>
            <td>{by}</td>
            <td>{`${action.replaceAll("_", " ")} ${subject}`}</td>
            <td>{reason}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
