/**
 * What went wrong beside the states of things: engines that could not be installed, weights that could
 * not be fetched, certificates that nobody renews, and what is wrong with control itself. Pure.
 */
import type { ShownCertificate } from "@heddle/common/identity";
import { decodeInstallState } from "@heddle/proto/install_state";
import { decodeWeightsState } from "@heddle/proto/weights_state";
import { sameWant, wantOf } from "../../core/placing/weights.ts";
import type { Node, World } from "../../core/world.ts";
import type { CatalogFileStatus } from "../catalog_watch.ts";
import { newestOf } from "../identity/days_left.ts";
import type { Facet, Look } from "./facet.ts";

/** What is known beside the world. */
export interface Beside {
  /** What peers of this moment have shown. */
  readonly certificates: readonly ShownCertificate[];
  /** Of this control; undefined without TLS. */
  readonly own: Validity | undefined;
  /** Time on the wall, which certificates end by. */
  readonly wallMs: number;
  /** What operators call this control. */
  readonly control: string;
  readonly catalogFile: CatalogFileStatus;
  /** Why the store does not answer. */
  readonly storeAway: string | undefined;
  /** The newest plan that would have broken a rule. */
  readonly dropped:
    | { readonly rule: string; readonly detail: string; readonly at: number }
    | undefined;
}

type Validity = Pick<ShownCertificate, "notBefore" | "notAfter">;

const DAY_MS = 86_400_000;

/** As the alert HeddleCertificateEnds has it. */
const ENDS_SOON_MS = 14 * DAY_MS;
/** Of a short life; it is renewed with a third of it left, so who has less than this was not. */
const ENDS_SOON_SHARE = 1 / 5;

/** How long a plan that was dropped stays news. */
const DROPPED_MS = 600_000;

export function troubleFacets(world: World, beside: Beside, now: number): Look {
  const facets = new Map<string, Facet>();
  const trying = new Set<string>();
  for (const node of world.nodes.values()) {
    installFacets(node, facets, trying);
    fetchFacets(world, node, facets, trying);
  }
  const shown = peersOf(beside.certificates);
  for (const [key, { who, newest }] of shown) {
    const facet = endsSoon(newest, beside.wallMs, {
      ...who,
      next:
        "agents and routers renew theirs by themselves: that program's log says why it does not; " +
        "site.yml renews it too",
    });
    if (facet !== undefined) facets.set(key, facet);
  }
  controlFacets(beside, now, facets);
  return {
    facets,
    // Whose connection has ended may have ended for this.
    unsure: (key) => trying.has(key) || (key.startsWith("peer ") && !shown.has(key)),
  };
}

function installFacets(
  { name: node, inventory }: Node,
  facets: Map<string, Facet>,
  trying: Set<string>,
): void {
  for (const install of inventory.installs?.installs ?? []) {
    const { name, version, reason, message, wanted } = install;
    const state = decodeInstallState(install.state);
    if (!wanted || state === "installed") continue;
    const key = `install ${node} ${name} ${version}`;
    if (state !== "failed") trying.add(key);
    else {
      facets.set(key, {
        kind: "node",
        subject: node,
        state: "install_failed",
        part: `${name} ${version}`,
        cause: reason,
        why: joined(reason, message),
        next: `heddle engines shows how it goes on; heddle logs ${node} agent has more`,
        bad: true,
        passing: true,
      });
    }
  }
}

function fetchFacets(
  world: World,
  { name: node, inventory }: Node,
  facets: Map<string, Facet>,
  trying: Set<string>,
): void {
  for (const { want, state, folder, reason, message } of inventory.weights?.weights ?? []) {
    const source = want?.source ?? folder;
    const key = `weights ${node} ${source}`;
    const word = decodeWeightsState(state);
    if (word === "ready") continue;
    if (word !== "failed") trying.add(key);
    else {
      const model = world.catalog.catalog.models.find((each) => {
        const own = wantOf(each, "");
        return own !== undefined && want !== undefined && sameWant(own, want);
      });
      facets.set(key, {
        kind: "node",
        subject: node,
        state: "fetch_failed",
        part: source,
        cause: reason,
        why: joined(reason, message),
        next: model === undefined
          ? `heddle logs ${node} agent has more`
          : `once the cause is gone: heddle weights prefetch ${model.name} --nodes ${node}`,
        bad: true,
        passing: true,
      });
    }
  }
}

const KINDS = { agent: "node", router: "router", attached: "replica" } as const;

interface PeerCertificate {
  readonly who: Pick<Facet, "kind" | "subject">;
  readonly newest: ShownCertificate;
}

/** The newest of each agent, router and deployment: after a renewal the one before may be shown still. */
function peersOf(shown: readonly ShownCertificate[]): ReadonlyMap<string, PeerCertificate> {
  const byPeer = Map.groupBy(shown, ({ identity }) => `peer ${identity?.role} ${identity?.name}`);
  return new Map([...byPeer].flatMap(([key, all]) => {
    const newest = newestOf(all);
    const { role, name } = newest?.identity ?? {};
    if (newest === undefined || name === undefined) return [];
    if (role !== "agent" && role !== "router" && role !== "attached") return [];
    return [[key, { who: { kind: KINDS[role], subject: name }, newest }] as const];
  }));
}

function endsSoon(
  { notBefore, notAfter }: Validity,
  wallMs: number,
  { kind, subject, next }: Pick<Facet, "kind" | "subject" | "next">,
): Facet | undefined {
  const leftMs = notAfter - wallMs;
  if (leftMs > Math.min(ENDS_SOON_MS, (notAfter - notBefore) * ENDS_SOON_SHARE)) return undefined;
  const ended = leftMs <= 0;
  return {
    kind,
    subject,
    state: ended ? "certificate_ended" : "certificate_ends",
    why: `${ended ? "since" : "on"} ${new Date(notAfter).toISOString().slice(0, 16)}Z`,
    next,
    bad: true,
    passing: true,
  };
}

/** Of the file's states, those in which it is not acted on and somebody should do something. */
const FILE_NEXT: Readonly<Partial<Record<CatalogFileStatus["state"], (file: string) => string>>> = {
  invalid: (file) => `correct it; check it with: heddle plan ${file}`,
  unreadable: () => "the user that control runs as must be allowed to read it",
  waiting: (file) => `see what it would come to: heddle plan ${file}`,
};

function controlFacets(beside: Beside, now: number, facets: Map<string, Facet>): void {
  const { control, own, wallMs, catalogFile: { file, state, detail }, storeAway, dropped } = beside;
  const self = { kind: "control", subject: control, bad: true, passing: true } as const;
  const ends = own &&
    endsSoon(own, wallMs, { ...self, next: "ansible-playbook site.yml renews it" });
  if (ends !== undefined) facets.set("own certificate", ends);
  if (storeAway !== undefined) {
    facets.set("store", {
      ...self,
      state: "store_away",
      why: `it decides nothing: ${storeAway}`,
      next: "look at the database, or at the disk of control's state_directory",
    });
  }
  const next = FILE_NEXT[state];
  if (next !== undefined) {
    const [why = ""] = detail.split("\n");
    facets.set("catalog file", {
      ...self,
      state: `catalog_${state}`,
      cause: detail,
      why,
      next: next(file),
    });
  }
  if (dropped !== undefined && now - dropped.at < DROPPED_MS) {
    facets.set("plan", {
      ...self,
      state: "plan_dropped",
      cause: dropped.rule,
      why: `it broke ${dropped.rule}: ${dropped.detail}`,
      next: "a bug: report it with control's log",
    });
  }
}

function joined(reason: string, message: string): string {
  if (message === "" || message.startsWith(reason)) return message || reason;
  return reason === "" ? message : `${reason}: ${message}`;
}
