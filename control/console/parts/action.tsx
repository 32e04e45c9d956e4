/**
 * A decision by button. Before it is made, the dialog shows what it would come to, as control foresees
 * it, and asks why; a viewer has no buttons.
 */
import { createContext } from "preact";
import { useContext, useEffect, useRef, useState } from "preact/hooks";
import type { ConsoleRole, Preview, Visit } from "../../edge/console/wire.ts";
import { foresee, rpc, wordsOf } from "../call.ts";
import { plural } from "../words.ts";
import { Notice } from "./notice.tsx";

export interface Action {
  /** On the button: "Drain". */
  readonly label: string;
  /** The question: "Drain node gpu-1?". */
  readonly title: string;
  /** What it means, in a sentence. */
  readonly meaning: string;
  readonly method: string;
  readonly request: Readonly<Record<string, unknown>>;
  /** What control is asked to foresee; absent when there is nothing to foresee. */
  readonly asked?: Readonly<Record<string, unknown>>;
  /** Whether a reason can be given. */
  readonly reason: boolean;
  /** It takes something out of service. */
  readonly grave: boolean;
  /** A number to choose, and what it is called in the request. */
  readonly number?: { readonly field: string; readonly label: string; readonly value: number };
}

/** Who looks: it decides which buttons there are. */
export const VisitContext = createContext<Visit | undefined>(undefined);

const RANKS: readonly ConsoleRole[] = ["viewer", "operator", "admin"];

export function useMay(role: ConsoleRole): boolean {
  const visit = useContext(VisitContext);
  return visit !== undefined && RANKS.indexOf(visit.role) >= RANKS.indexOf(role);
}

export function ActionButton({ action }: { readonly action: Action }) {
  const [open, setOpen] = useState(false);
  if (!useMay("operator")) return null;
  return (
    <>
      <button type="button" onClick={() => setOpen(true)}>{action.label}</button>
      {open ? <ActionDialog action={action} onClose={() => setOpen(false)} /> : null}
    </>
  );
}

function ActionDialog(
  { action, onClose }: { readonly action: Action; readonly onClose: () => void },
) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [reason, setReason] = useState("");
  const [number, setNumber] = useState(action.number?.value ?? 0);
  const [state, setState] = useState<{ busy: boolean; error: string }>({ busy: false, error: "" });
  const chosen = action.number === undefined ? {} : { [action.number.field]: number };
  useEffect(() => dialog.current?.showModal(), []);
  const decide = async (event: Event) => {
    event.preventDefault();
    setState({ busy: true, error: "" });
    try {
      await rpc(action.method, {
        ...action.request,
        ...chosen,
        ...(action.reason ? { reason } : {}),
      });
      onClose();
    } catch (error) {
      setState({ busy: false, error: wordsOf(error) });
    }
  };
  return (
    <dialog ref={dialog} onClose={onClose} aria-labelledby="action-title">
      <form onSubmit={decide}>
        <h2 id="action-title">{action.title}</h2>
        <p>{action.meaning}</p>
        {action.number === undefined ? null : (
          <label>
            {action.number.label}
            <input
              type="number"
              min={0}
              max={10_000}
              required
              value={number}
              onInput={(event) => setNumber(event.currentTarget.valueAsNumber || 0)}
            />
          </label>
        )}
        {action.asked === undefined ? null : <Foreseen asked={{ ...action.asked, ...chosen }} />}
        {action.reason
          ? (
            <label>
              Why (others see it)
              <input
                type="text"
                maxLength={500}
                value={reason}
                onInput={(event) => setReason(event.currentTarget.value)}
              />
            </label>
          )
          : null}
        {state.error === "" ? null : <Notice tone="bad">{state.error}</Notice>}
        <div class="buttons">
          <button type="button" onClick={onClose}>Cancel</button>
          <button type="submit" class={action.grave ? "grave" : "main"} disabled={state.busy}>
            {action.label}
          </button>
        </div>
      </form>
    </dialog>
  );
}

function Foreseen({ asked }: { readonly asked: Readonly<Record<string, unknown>> }) {
  const [found, setFound] = useState<Preview | string | undefined>();
  const key = JSON.stringify(asked);
  useEffect(() => {
    let stale = false;
    setFound(undefined);
    foresee(asked).then(
      (preview) => stale || setFound(preview),
      (error: unknown) => stale || setFound(wordsOf(error)),
    );
    return () => {
      stale = true;
    };
  }, [key]);
  if (found === undefined) return <p class="quiet">Looking ahead…</p>;
  if (typeof found === "string") return <Notice tone="busy">{found}</Notice>;
  return <Consequences preview={found} />;
}

function Consequences({ preview }: { readonly preview: Preview }) {
  const { starts, stops, kept, shortages, incomplete } = preview;
  return (
    <section class="foreseen" aria-label="What would happen">
      <h3>What would happen</h3>
      {starts.length === 0 && stops.length === 0 ? <p>Nothing starts and nothing stops.</p> : null}
      <ul>
        {stops.map(({ id, model, nodes, reason }) => (
          <li key={id}>
            {`stops ${id} of ${model} on ${nodes.join(", ")}`}
            {reason === "" ? "" : ` (${reason.replaceAll("_", " ")})`}
          </li>
        ))}
        {starts.map(({ model, profile, nodes }, index) => (
          <li key={index}>{`starts a replica of ${model} (${profile}) on ${nodes.join(", ")}`}</li>
        ))}
        {shortages.map(({ model, wanted, running, detail }) => (
          <li key={model} class="short">
            {`${model}: ${running} of ${wanted} would run. ${detail}`}
          </li>
        ))}
      </ul>
      <p class="quiet">
        {`${plural(kept, "replica")} go on as they are.`}
        {incomplete ? " There is more to do than was looked at." : ""}
      </p>
    </section>
  );
}
