/** Replicas with their shards, and why any of them waits. */
import type { ReplicaItem, ShardItem } from "../../edge/console/wire.ts";
import { replicaActions } from "../actions.ts";
import { hrefOf } from "../route.ts";
import { attachedWords, byName, duration } from "../words.ts";
import { ActionButton, useMay } from "./action.tsx";
import { Attached, State } from "./state.tsx";

export function ReplicaTable(
  { replicas, now }: {
    readonly replicas: readonly (readonly [id: string, replica: ReplicaItem])[];
    readonly now: number;
  },
) {
  if (replicas.length === 0) return <p class="quiet">Nothing.</p>;
  const sorted = [...replicas].sort(([a, x], [b, y]) => byName(x.model, y.model) || byName(a, b));
  return (
    <div class="replicas">
      {sorted.map(([id, replica]) => <Replica key={id} id={id} replica={replica} now={now} />)}
    </div>
  );
}

function Replica(
  { id, replica, now }: {
    readonly id: string;
    readonly replica: ReplicaItem;
    readonly now: number;
  },
) {
  const mayRead = useMay("operator");
  const { model, profile, engine, fabric, inFlight, state, since, reason, attached } = replica;
  const words = [
    ...(attached === undefined ? [`profile ${profile}`, engine] : [attachedWords(attached)]),
    ...(fabric === "" ? [] : [`fabric ${fabric}`]),
    ...(inFlight === undefined ? [] : [`${inFlight} in flight`]),
  ];
  return (
    <article class="replica" aria-label={`replica ${id}`}>
      <h3>
        {id}
        <State state={state} />
        <Attached attached={attached} />
        <span class="quiet">{`for ${duration(now - since)}`}</span>
      </h3>
      <p>
        {model === "" ? "no model told" : <a href={hrefOf("models", model)}>{model}</a>}
        {` · ${words.join(" · ")}`}
      </p>
      {reason === "" ? null : <p class="reason">{reason}</p>}
      <table class="shards">
        <thead>
          <tr>
            <th>Shard</th>
            <th>Node</th>
            <th>GPUs</th>
            <th>HCAs</th>
            <th>State</th>
            <th>
              <span class="hidden">Log</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {replica.shards.map((shard) => (
            <Shard key={shard.id} shard={shard} mayRead={mayRead && attached === undefined} />
          ))}
        </tbody>
      </table>
      <div class="buttons">
        {replicaActions(id, replica).map((action) => (
          <ActionButton key={action.label} action={action} />
        ))}
      </div>
    </article>
  );
}

function Shard({ shard, mayRead }: { readonly shard: ShardItem; readonly mayRead: boolean }) {
  const { id, rank, node, gpus, hcas, state, reason, message, progress, logTail } = shard;
  const why = [reason.replaceAll("_", " "), message, progress].filter((each) => each !== "");
  return (
    <tr>
      <td>{rank === 0 ? "0, leads" : rank}</td>
      <td>
        <a href={hrefOf("nodes", node)}>{node}</a>
      </td>
      <td>{gpus.join(", ") || "–"}</td>
      <td>{hcas.join(", ") || "–"}</td>
      <td>
        <State state={state} />
        {why.length === 0 ? null : <span class="reason">{why.join(": ")}</span>}
        {logTail.length === 0 ? null : (
          <details>
            <summary>Last lines</summary>
            <pre>{logTail.join("\n")}</pre>
          </details>
        )}
      </td>
      <td>{mayRead ? <a href={hrefOf("logs", "shard", id)}>Log</a> : null}</td>
    </tr>
  );
}
