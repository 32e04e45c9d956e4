/** The fleet at a glance: islands of nodes that reach each other, and the GPUs in them. */
import { useMemo, useState } from "preact/hooks";
import type { HcaItem, NodeItem } from "../../edge/console/wire.ts";
import { nodeActions } from "../actions.ts";
import type { Live } from "../follow.ts";
import { holdersOf } from "../holders.ts";
import { ActionButton } from "../parts/action.tsx";
import { GpuTile } from "../parts/gpu_tile.tsx";
import { Problems } from "../parts/problems.tsx";
import { Attached, State } from "../parts/state.tsx";
import { hrefOf } from "../route.ts";
import { attachedWords, byName, duration, plural } from "../words.ts";

type Named = readonly [name: string, node: NodeItem];

export function Fleet({ live }: { readonly live: Live }) {
  const [filter, setFilter] = useState("");
  const holders = useMemo(() => holdersOf(live.replicas), [live.replicas]);
  const all = [...live.nodes].sort(([a], [b]) => byName(a, b));
  const shown = all.filter((named) => matches(named, filter.trim().toLowerCase()));
  return (
    <>
      <header class="page">
        <h1>Fleet</h1>
        <Summary
          nodes={all}
          held={[...holders.values()].reduce((sum, each) => sum + each.size, 0)}
        />
        <input
          type="search"
          placeholder="Node, GPU class, label, state"
          aria-label="Show only nodes with"
          value={filter}
          onInput={(event) => setFilter(event.currentTarget.value)}
        />
      </header>
      {all.length === 0 && live.arrived.has("nodes")
        ? <p class="quiet">No node has registered yet. An agent on a node brings it here.</p>
        : null}
      {islandsOf(shown).map(({ label, title, words, nodes }) => (
        <section class="island" key={title} aria-label={label}>
          <h2>
            {title}
            <span class="quiet">{words}</span>
          </h2>
          <div class="nodes">
            {nodes.map(([node, item]) => (
              <NodeCard
                key={node}
                name={node}
                node={item}
                holders={holders.get(node)}
                now={live.now}
              />
            ))}
          </div>
        </section>
      ))}
    </>
  );
}

function Summary({ nodes, held }: { readonly nodes: readonly Named[]; readonly held: number }) {
  const gpus = nodes.reduce((sum, [, { gpus }]) => sum + gpus.length, 0);
  const ready = nodes.filter(([, { state }]) => state === "ready").length;
  const troubled = nodes.filter(([, node]) => troubles(node) > 0).length;
  return (
    <p class="summary">
      <b>{`${ready} of ${plural(nodes.length, "node")} ready`}</b>
      <span>{`${held} of ${plural(gpus, "GPU")} in use`}</span>
      {troubled > 0 ? <span class="bad">{`${plural(troubled, "node")} with problems`}</span> : null}
    </p>
  );
}

function NodeCard(
  { name, node, holders, now }: {
    readonly name: string;
    readonly node: NodeItem;
    readonly holders: ReadonlyMap<number, string> | undefined;
    readonly now: number;
  },
) {
  return (
    <article class={`node ${node.state}`} aria-label={`node ${name}`}>
      <h3>
        <a href={hrefOf("nodes", name)}>{name}</a>
        <State state={node.state} />
        <Attached attached={node.attached} />
        {node.seenAt === undefined
          ? null
          : <span class="quiet">{`silent for ${duration(now - node.seenAt)}`}</span>}
      </h3>
      {node.decisionReason === "" && node.decidedBy === ""
        ? null
        : <p class="quiet">{`by ${node.decidedBy}: ${node.decisionReason || "no reason given"}`}
        </p>}
      {node.attached === undefined ? null : <p>{attachedWords(node.attached)}</p>}
      <ul class="gpus">
        {node.gpus.map((gpu) => (
          <GpuTile key={gpu.index} gpu={gpu} replica={holders?.get(gpu.index)} />
        ))}
      </ul>
      {node.gpus.length === 0 && node.attached === undefined ? <p class="quiet">no GPU</p> : null}
      <Ports hcas={node.hcas} />
      <Troubles node={node} />
      <div class="buttons">
        {nodeActions(name, node).map((action) => (
          <ActionButton
            key={action.label}
            action={action}
          />
        ))}
      </div>
    </article>
  );
}

export function Ports({ hcas }: { readonly hcas: readonly HcaItem[] }) {
  if (hcas.length === 0) return null;
  return (
    <ul class="ports" aria-label="HCA ports">
      {hcas.map(({ name, port, active, gbps, fabric, problems, link }) => (
        <li
          key={`${name}:${port}`}
          class={!active || problems.length > 0 ? "bad" : ""}
          title={`${link}${fabric === "" ? "" : `, fabric ${fabric}`}`}
        >
          {`${name}:${port} ${active ? gbps === undefined ? "up" : `${gbps} Gb/s` : "down"}`}
        </li>
      ))}
    </ul>
  );
}

function Troubles({ node }: { readonly node: NodeItem }) {
  return (
    <>
      <Problems problems={node.problems} />
      {node.gpus.map(({ index, problems }) => (
        <Problems key={index} problems={problems} of={`GPU ${index}`} />
      ))}
      {node.hcas.map(({ name, port, problems }) => (
        <Problems key={`${name}:${port}`} problems={problems} of={`${name}:${port}`} />
      ))}
    </>
  );
}

function troubles({ problems, gpus, hcas }: NodeItem): number {
  return [{ problems }, ...gpus, ...hcas].reduce((sum, each) => sum + each.problems.length, 0);
}

/**
 * By fabric; a node that is in several is shown in each. Those in none come after them, and then
 * what is attached: nobody knows what it reaches.
 */
function islandsOf(nodes: readonly Named[]) {
  const islands = new Map<string, Named[]>();
  const attached = nodes.filter(([, node]) => node.attached !== undefined);
  for (const named of nodes) {
    if (named[1].attached !== undefined) continue;
    const names = named[1].fabrics.length === 0 ? [""] : named[1].fabrics.map(({ name }) => name);
    for (const name of names) islands.set(name, [...islands.get(name) ?? [], named]);
  }
  const own = [...islands].sort(([a], [b]) => Number(a === "") - Number(b === "") || byName(a, b))
    .map(([name, nodes]) => ({
      label: name === "" ? "On their own" : name,
      title: name === "" ? "Nodes on their own" : `Fabric ${name}`,
      words: islandWords(nodes, name),
      nodes,
    }));
  if (attached.length === 0) return own;
  const title = "Attached: engines that something else started";
  return [
    ...own,
    { label: "Attached", title, words: plural(attached.length, "node"), nodes: attached },
  ];
}

function islandWords(nodes: readonly Named[], fabric: string): string {
  const classes = new Map<string, number>();
  for (const [, { gpus }] of nodes) {
    for (const { gpuClass } of gpus) classes.set(gpuClass, (classes.get(gpuClass) ?? 0) + 1);
  }
  const here = nodes.flatMap(([, { fabrics }]) => fabrics.filter(({ name }) => name === fabric));
  const rates = here.flatMap(({ gbps }) => gbps === undefined ? [] : [gbps]);
  return [
    plural(nodes.length, "node"),
    ...[...classes].map(([name, count]) => `${count} × ${name || "unknown class"}`),
    ...(rates.length === 0 ? [] : [`${Math.min(...rates)} Gb/s`]),
    ...(here.some(({ degraded }) => degraded) ? ["degraded"] : []),
  ].join(" · ");
}

function matches([name, node]: Named, filter: string): boolean {
  if (filter === "") return true;
  const words = [
    name,
    node.state,
    node.address,
    ...node.gpus.map(({ gpuClass }) => gpuClass),
    ...node.replicaIds,
    ...node.fabrics.map(({ name }) => name),
    ...Object.entries(node.labels).map(([key, value]) => `${key}=${value}`),
  ];
  return words.some((word) => word.toLowerCase().includes(filter));
}
