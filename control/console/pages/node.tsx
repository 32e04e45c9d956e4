/** Everything about one node. */
import type { NodeItem } from "../../edge/console/wire.ts";
import { nodeActions } from "../actions.ts";
import type { Live } from "../follow.ts";
import { holdersOf } from "../holders.ts";
import { ActionButton, useMay } from "../parts/action.tsx";
import { GpuTile } from "../parts/gpu_tile.tsx";
import { Problems } from "../parts/problems.tsx";
import { ReplicaTable } from "../parts/replica_table.tsx";
import { Attached, State } from "../parts/state.tsx";
import { hrefOf } from "../route.ts";
import { attachedWords, byName } from "../words.ts";
import { Ports } from "./fleet.tsx";

export function NodePage({ live, name }: { readonly live: Live; readonly name: string }) {
  const node = live.nodes.get(name);
  const mayRead = useMay("operator");
  if (node === undefined) {
    return live.arrived.has("nodes") ? <p>{`There is no node "${name}".`}</p> : null;
  }
  const holders = holdersOf(live.replicas).get(name);
  const here = [...live.replicas].filter(([, { shards }]) =>
    shards.some((shard) => shard.node === name)
  );
  return (
    <>
      <header class="page">
        <h1>{`Node ${name}`}</h1>
        <State state={node.state} />
        <Attached attached={node.attached} />
        <div class="buttons">
          {nodeActions(name, node).map((action) => (
            <ActionButton key={action.label} action={action} />
          ))}
          {mayRead && node.attached === undefined
            ? <a class="button" href={hrefOf("logs", "node", name)}>Log of its agent</a>
            : null}
        </div>
      </header>
      {node.known ? null : <p>It has not registered with this control yet.</p>}
      <Facts node={node} />
      <Problems problems={node.problems} />
      {node.attached === undefined ? <h2>GPUs</h2> : null}
      <ul class="gpus large">
        {node.gpus.map((gpu) => (
          <GpuTile key={gpu.index} gpu={gpu} replica={holders?.get(gpu.index)} />
        ))}
      </ul>
      {node.gpus.map(({ index, problems }) => (
        <Problems key={index} problems={problems} of={`GPU ${index}`} />
      ))}
      {node.hcas.length === 0 ? null : <h2>HCA ports</h2>}
      <Ports hcas={node.hcas} />
      {node.hcas.map(({ name, port, problems }) => (
        <Problems key={`${name}:${port}`} problems={problems} of={`${name}:${port}`} />
      ))}
      <h2>What runs here</h2>
      <ReplicaTable replicas={here} now={live.now} />
    </>
  );
}

function Facts({ node }: { readonly node: NodeItem }) {
  const facts: readonly (readonly [string, string])[] = [
    ["Address", node.address],
    ["Attached", node.attached === undefined ? "" : attachedWords(node.attached)],
    ["System", node.system],
    ["CPUs, memory", node.attached ? "" : `${node.cpus}, ${node.memoryGib ?? "?"} GiB`],
    ["Driver", node.driver],
    ["Agent", node.agentVersion],
    [
      "Fabrics",
      node.fabrics.map(({ name }) => name).join(", ") ||
      (node.attached ? "" : "none: an island of its own"),
    ],
    ["Engines", node.engines.map(({ name, version }) => `${name} ${version}`).join(", ")],
    [
      "Labels",
      Object.entries(node.labels).sort(([a], [b]) => byName(a, b))
        .map(([key, value]) => `${key}=${value}`).join(", "),
    ],
    [
      "Decided",
      node.decidedBy === ""
        ? ""
        : `by ${node.decidedBy}: ${node.decisionReason || "no reason given"}`,
    ],
  ];
  return (
    <dl class="facts">
      {facts.filter(([, value]) => value !== "").map(([key, value]) => (
        <div key={key}>
          <dt>{key}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
