/**
 * Declared fabrics against what the ports say. Which adapters reach each other is declared by
 * people, because nothing on the wire tells; whether they can carry traffic is checked here, because
 * a fabric with a dead port looks exactly like a good one until the first all-reduce.
 */

import type { FabricProblemReason, HcaProblem, Problem } from "../problem.ts";
import type { DeclaredFabric } from "./declared_fabric.ts";
import type { HcaPort, HcaSurvey } from "./hca.ts";

/** A declared fabric that carries traffic now. */
export interface UsableFabric {
  readonly name: string;
  /** Rate of its slowest usable port; undefined when none says its rate. */
  readonly rateGbps: number | undefined;
  readonly degraded: boolean;
  /** Names of the adapters with a usable port. */
  readonly hcas: readonly string[];
}

export interface FabricCheck {
  readonly fabrics: readonly UsableFabric[];
  /** The ports, now with their fabric, and with what keeps them out of it. */
  readonly ports: readonly HcaPort[];
  readonly problems: readonly Problem<FabricProblemReason>[];
}

/** What an entry of a declaration came to. */
interface Entry {
  readonly usable: readonly HcaPort[];
  readonly judged: readonly HcaPort[];
  /** Why none, or not all that was asked, can be used; empty when all is well. */
  readonly faults: readonly string[];
}

/** Checks every declaration. `unreadable` says why ports cannot be seen at all, when they cannot. */
export function checkFabrics(
  declared: readonly DeclaredFabric[],
  survey: HcaSurvey,
  unreadable?: string,
): FabricCheck {
  const fabrics: UsableFabric[] = [];
  const problems: Problem<FabricProblemReason>[] = [];
  const judged = new Map<string, HcaPort>();
  for (const fabric of declared) {
    const entries = fabric.hcas.map((entry) => checkEntry(fabric, entry, survey, judged));
    for (const port of entries.flatMap((entry) => entry.judged)) judged.set(keyOf(port), port);
    const usable = entries.flatMap((entry) => entry.usable);
    const faults = unreadable === undefined
      ? entries.flatMap((entry) => entry.faults)
      : [unreadable];
    const verdict = judgeFabric(fabric, usable, faults);
    problems.push(...verdict.problems);
    if (verdict.fabric !== undefined) fabrics.push(verdict.fabric);
  }
  const ports = survey.ports.map((port) => judged.get(keyOf(port)) ?? port);
  return { fabrics, ports, problems };
}

/** `mlx5_0` stands for every port of the adapter, `mlx5_0:1` for one. */
function checkEntry(
  fabric: DeclaredFabric,
  entry: string,
  survey: HcaSurvey,
  taken: ReadonlyMap<string, HcaPort>,
): Entry {
  const [, name = entry, port] = /^(.*?)(?::(\d+))?$/.exec(entry) ?? [];
  const excluded = survey.excluded.find((each) => each.name === name);
  if (excluded !== undefined) {
    return { usable: [], judged: [], faults: [`${name} cannot be used: ${excluded.why}`] };
  }
  const ports = survey.ports.filter((each) =>
    each.name === name && (port === undefined || each.port === Number(port)) &&
    !taken.has(keyOf(each))
  );
  if (ports.length === 0) {
    return { usable: [], judged: [], faults: [`${entry} is not on this node`] };
  }
  const judged = ports.map((each) => judgeLinkLayer({ ...each, fabric: fabric.name }, fabric));
  const usable = judged.filter((each) => each.problems.length === 0);
  // The second port of a card is often unused on purpose: an adapter with one usable port is whole.
  const faults = usable.length > 0
    ? []
    : judged.flatMap((each) => each.problems.map((problem) => problem.detail.replace(/\.$/, "")));
  return { usable, judged, faults };
}

function judgeLinkLayer(port: HcaPort, fabric: DeclaredFabric): HcaPort {
  const wanted = fabric.linkLayer;
  if (wanted === undefined || port.linkLayer === undefined || port.linkLayer === wanted) {
    return port;
  }
  const problem: HcaProblem = {
    reason: "link_layer_wrong",
    detail: `${port.name} port ${port.port} is ${port.linkLayer}, and fabric ${fabric.name} is ` +
      `declared ${wanted}.`,
    remedy: "Correct the declaration, or set the port's type (mlxconfig LINK_TYPE) and reboot.",
  };
  return { ...port, problems: [...port.problems, problem] };
}

function judgeFabric(
  fabric: DeclaredFabric,
  usable: readonly HcaPort[],
  faults: readonly string[],
): {
  readonly fabric?: UsableFabric;
  readonly problems: readonly Problem<FabricProblemReason>[];
} {
  const reasons = faults.join("; ");
  if (usable.length === 0) {
    return {
      problems: [{
        reason: "fabric_unusable",
        detail:
          `Fabric ${fabric.name} is not advertised, none of its adapters can carry traffic: ` +
          `${reasons || "it declares none"}.`,
        remedy: "Repair the ports, or correct the fabric in the agent's configuration.",
      }],
    };
  }
  if (new Set(usable.map((port) => port.linkLayer)).size > 1) {
    const each = usable.map((port) => `${port.name} ${port.linkLayer}`).join(", ");
    return {
      problems: [{
        reason: "fabric_mixed_link_layers",
        detail:
          `Fabric ${fabric.name} is not advertised, it mixes InfiniBand and Ethernet, which ` +
          `no collective can use together: ${each}.`,
        remedy: "Declare one fabric for each link layer, or set link_layer.",
      }],
    };
  }
  const slow = usable.filter((port) => (port.rateGbps ?? Infinity) < (fabric.rateGbps ?? 0));
  const problems: Problem<FabricProblemReason>[] = [];
  if (faults.length > 0) {
    problems.push({
      reason: "fabric_degraded",
      detail: `Fabric ${fabric.name} works with ${usable.length} port(s) left: ${reasons}.`,
      remedy: "Repair the ports, or correct the fabric in the agent's configuration.",
    });
  }
  if (slow.length > 0) {
    const each = slow.map((port) => `${port.name} ${port.rateGbps} Gb/s`).join(", ");
    problems.push({
      reason: "fabric_rate_low",
      detail: `Fabric ${fabric.name} is declared at ${fabric.rateGbps} Gb/s, and runs slower: ` +
        `${each}.`,
      remedy: "Check cable and switch port for lost lanes, or correct rate_gbps.",
    });
  }
  const rates = usable.flatMap((port) => port.rateGbps ?? []);
  return {
    fabric: {
      name: fabric.name,
      rateGbps: rates.length > 0 ? Math.min(...rates) : undefined,
      degraded: problems.length > 0,
      hcas: [...new Set(usable.map((port) => port.name))],
    },
    problems,
  };
}

function keyOf(port: { readonly name: string; readonly port: number }): string {
  return `${port.name}:${port.port}`;
}
