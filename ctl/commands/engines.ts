/** `ctl engines`: which engines nodes have, and what becomes of those that control wants. */
import type { NodeView } from "@heddle/proto/gen/admin";
import { decodeInstallState } from "@heddle/proto/install_state";
import { CALL_TIMEOUT_MS } from "../client.ts";
import { listCommand } from "../command.ts";
import type { Listing } from "../table.ts";
import { installReason } from "./nodes/installs.ts";

interface EngineRow {
  readonly node: string;
  readonly engine: string;
  readonly version: string;
  readonly state: string;
  readonly wanted: boolean;
  readonly reason: string;
  readonly path: string;
}

export const listEngines = listCommand(
  "List engines: those that run, and those that are being installed",
  async (client) => {
    const { nodes } = await client.listNodes({}, { timeoutMs: CALL_TIMEOUT_MS });
    return engineListing(nodes.flatMap(rowsOf));
  },
);

function engineListing(rows: readonly EngineRow[]): Listing<EngineRow> {
  return {
    rows,
    empty: "No node has an engine. Name them in agent.yaml, or have control install them (engines)",
    record: (row) => ({ ...row }),
    fields: ["node", "engine", "version", "state", "wanted", "reason", "path"],
    columns: [
      { title: "NODE", cell: (row) => row.node },
      { title: "ENGINE", cell: (row) => row.engine },
      { title: "VERSION", cell: (row) => row.version },
      { title: "STATE", cell: (row) => row.state },
      { title: "WANTED", cell: (row) => row.wanted ? "yes" : "no" },
      { title: "REASON", cell: (row) => row.reason },
      { title: "PATH", cell: (row) => row.path, wide: true },
    ],
  };
}

// An engine works when it said its version; what was installed and does not is a problem of the node.
function rowsOf({ name: node, inventory }: NodeView): readonly EngineRow[] {
  const installs = inventory?.installs?.installs ?? [];
  const works = (inventory?.engines ?? []).map(({ name, version, path, problems }) => ({
    node,
    engine: name,
    version,
    state: problems.length === 0 ? "works" : "does not work",
    wanted: installs.some((each) =>
      each.name === name && each.wanted && path.includes(`/${name}-${each.version}/`)
    ),
    reason: problems.map(({ reason, detail }) => `${reason}: ${detail}`).join("; "),
    path,
  }));
  const others = installs.filter(({ name, version, state }) =>
    decodeInstallState(state) !== "installed" ||
    !works.some(({ engine, path }) => engine === name && path.includes(`/${name}-${version}/`))
  ).map((install) => ({
    node,
    engine: install.name,
    version: install.version,
    state: decodeInstallState(install.state),
    wanted: install.wanted,
    reason: installReason(install),
    path: "",
  }));
  return [...works, ...others];
}
