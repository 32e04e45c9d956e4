/** One model: where it runs, why there, why nowhere else, and what is asked of it. */
import { useEffect, useState } from "preact/hooks";
import { modelActions } from "../actions.ts";
import { rpc, wordsOf } from "../call.ts";
import type { Live } from "../follow.ts";
import { ActionButton } from "../parts/action.tsx";
import { Notice } from "../parts/notice.tsx";
import { ReplicaTable } from "../parts/replica_table.tsx";
import { TrafficPlots } from "../parts/traffic_plots.tsx";

/** How often the explanation is asked for anew while it is looked at, in ms. */
const EXPLAIN_EVERY_MS = 5_000;

/** What Explain answers, as JSON has it: what is empty is left out. */
interface Explained {
  readonly summary?: string;
  readonly placements?: readonly {
    readonly replicaId?: string;
    readonly profile?: string;
    readonly nodes?: readonly string[];
    readonly scores?: Readonly<Record<string, number>>;
  }[];
  readonly rejections?: readonly {
    readonly profile?: string;
    readonly node?: string;
    readonly reason?: string;
    readonly detail?: string;
  }[];
}

export function ModelPage({ live, name }: { readonly live: Live; readonly name: string }) {
  const model = live.models.get(name);
  if (model === undefined) {
    return live.arrived.has("models") ? <p>{`There is no model "${name}".`}</p> : null;
  }
  const replicas = [...live.replicas].filter(([, replica]) => replica.model === name);
  return (
    <>
      <header class="page">
        <h1>{`Model ${name}`}</h1>
        <span class={model.ready >= model.desired ? "state good" : "state bad"}>
          {`${model.ready} of ${model.desired} ready`}
        </span>
        <div class="buttons">
          {modelActions(name, model).map((action) => (
            <ActionButton key={action.label} action={action} />
          ))}
        </div>
      </header>
      {model.reason === "" ? null : <p class="reason">{model.reason}</p>}
      <h2>Replicas</h2>
      <ReplicaTable replicas={replicas} now={live.now} />
      <h2>Why it is placed so</h2>
      <Explanation model={name} />
      <h2>Traffic</h2>
      <TrafficPlots model={name} latest={live.traffic.get(name)} />
    </>
  );
}

function Explanation({ model }: { readonly model: string }) {
  const [found, setFound] = useState<Explained | string | undefined>();
  useEffect(() => {
    let stale = false;
    const load = () =>
      rpc<Explained>("Explain", { model }).then(
        (explained) => stale || setFound(explained),
        (error: unknown) => stale || setFound(wordsOf(error)),
      );
    load();
    const timer = setInterval(load, EXPLAIN_EVERY_MS);
    return () => {
      stale = true;
      clearInterval(timer);
    };
  }, [model]);
  if (found === undefined) return <p class="quiet">Asking…</p>;
  if (typeof found === "string") return <Notice tone="bad">{found}</Notice>;
  const { summary = "", placements = [], rejections = [] } = found;
  return (
    <>
      <p class="explained">{summary}</p>
      <ul>
        {placements.map(({ replicaId, profile, nodes = [], scores = {} }) => (
          <li key={replicaId}>
            {`${replicaId} by profile ${profile} on ${nodes.join(", ")}`}
            <span class="quiet">
              {Object.entries(scores).map(([key, value]) => ` ${key} ${value.toFixed(2)}`).join()}
            </span>
          </li>
        ))}
      </ul>
      {rejections.length === 0 ? null : (
        <table>
          <thead>
            <tr>
              <th>Node</th>
              <th>Profile</th>
              <th>Why not</th>
            </tr>
          </thead>
          <tbody>
            {rejections.map(({ node = "", profile = "", reason = "", detail = "" }) => (
              <tr key={`${profile} ${node}`}>
                <td>{node}</td>
                <td>{profile}</td>
                <td>{`${reason}${detail === "" ? "" : `: ${detail}`}`}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </>
  );
}
