/** `ctl plan FILE`: what a catalog would start, stop and change, without doing it. */
import { buildCommand } from "@stricli/core";
import {
  type CatalogPlan,
  CatalogPlanSchema,
  type ModelChange,
  type ModelShortage,
  type PlannedReplica,
} from "@heddle/proto/gen/admin";
import { HeddleError } from "@heddle/proto/error";
import {
  call,
  type CtlContext,
  FORM_ALIASES,
  SCREEN_FLAGS,
  type ScreenFlags,
} from "../../command.ts";
import { screenForm, writeScreen } from "../../live/screen.ts";
import { sayWait } from "../../io.ts";
import { toRecord } from "../../record.ts";
import { visible } from "../../table.ts";
import { CATALOG_PARAMETER, readCatalog } from "./catalog_text.ts";

/** Looking ahead on a large fleet takes a while. */
const PLAN_TIMEOUT_MS = 120_000;

export const plan = buildCommand({
  docs: { brief: "Show what a catalog would start, stop and change, without doing it" },
  parameters: {
    flags: SCREEN_FLAGS,
    aliases: FORM_ALIASES,
    positional: CATALOG_PARAMETER,
  },
  async func(this: CtlContext, flags: ScreenFlags, file: string) {
    const form = screenForm(flags);
    const request = await readCatalog(this, file);
    sayWait(this.io, "Control looks ahead; on a large fleet that takes up to two minutes");
    const answer = await call(
      this,
      flags,
      (client) => client.planCatalog(request, { timeoutMs: PLAN_TIMEOUT_MS }),
    );
    const { plan: found } = answer;
    if (found === undefined) {
      throw new HeddleError("protocol", "Control answered without a plan");
    }
    writeScreen(this.io, form, {
      text: () => formatPlan(found),
      record: () => toRecord(CatalogPlanSchema, found),
    });
  },
});

/** What changes first, then what that starts and stops, then what stands in the way. */
export function formatPlan(plan: CatalogPlan): string {
  const { changes, starts, stops } = plan;
  const nothing = changes.length + starts.length + stops.length === 0;
  const lines = [
    nothing ? `No change against revision ${plan.revision}` : `Against revision ${plan.revision}`,
    ...section("Models:", changes.map(formatChange)),
    ...steps(plan),
    `${count(plan.kept, "replica goes", "replicas go")} on as ${
      plan.kept === 1 ? "it is" : "they are"
    }`,
    ...(plan.incomplete ? ["There is more to do than was looked at"] : []),
    ...(plan.waitReason === "" ? [] : [`Waits for apply --yes: ${plan.waitDetail}`]),
  ];
  return `${lines.map(visibleLine).join("\n")}\n`;
}

/** Only what would be started, stopped and short; empty when that is nothing. */
export function formatSteps(plan: CatalogPlan): string {
  return steps(plan).map((line) => `${visibleLine(line)}\n`).join("");
}

function steps({ starts, stops, shortages }: CatalogPlan): readonly string[] {
  return [
    ...replaced(starts, stops),
    section("Would start:", starts.filter(({ replaces }) => replaces === "").map(formatReplica)),
    section(
      "Would stop:",
      stops.filter(({ replicaId }) => starts.every(({ replaces }) => replaces !== replicaId))
        .map(formatReplica),
    ),
    section("Would be short:", shortages.map(formatShortage)),
  ].flat();
}

function section(title: string, lines: readonly string[]): readonly string[] {
  return lines.length === 0 ? [] : [title, ...lines.map((line) => `  ${line}`)];
}

const SIGNS: Readonly<Record<string, string>> = {
  added: "+",
  removed: "-",
  replaced: "~",
  changed: "~",
};

function formatChange({ model, kind, parts }: ModelChange): string {
  const what = parts.length === 0 ? "" : `: ${parts.join(", ")}`;
  const effect = kind === "replaced" ? " (its engines are replaced)" : "";
  return `${SIGNS[kind] ?? "?"} ${model} ${kind}${what}${effect}`;
}

function formatReplica({ model, profile, nodes, replicaId, reason }: PlannedReplica): string {
  const name = replicaId === "" ? model : replicaId;
  const why = reason === "" ? "" : `: ${reason}`;
  return `${name}: profile ${profile} on ${nodes.join(", ")}${why}`;
}

/** What goes from one place to another, and what is replaced where it is; each from and to. */
function replaced(
  starts: readonly PlannedReplica[],
  stops: readonly PlannedReplica[],
): readonly (readonly string[])[] {
  const pairs = starts.flatMap((to) => {
    const from = stops.find(({ replicaId }) => replicaId !== "" && replicaId === to.replaces);
    if (from === undefined) return [];
    const place = ({ profile, nodes }: PlannedReplica) =>
      `profile ${profile} on ${nodes.join(", ")}`;
    const why = from.reason === "" ? "" : `: ${from.reason}`;
    const moves = from.nodes.toSorted().join() !== to.nodes.toSorted().join();
    return [{ moves, line: `${from.replicaId}: ${place(from)} → ${place(to)}${why}` }];
  });
  const lines = (moves: boolean) =>
    pairs.filter((each) => each.moves === moves)
      .map(({ line }) => line);
  return [section("Would move:", lines(true)), section("Would replace:", lines(false))];
}

function formatShortage({ model, running, wanted, detail }: ModelShortage): string {
  return `${model}: ${running} of ${wanted} would run${detail === "" ? "" : `: ${detail}`}`;
}

function count(number: number, one: string, many: string): string {
  return `${number} ${number === 1 ? one : many}`;
}

// The indent is ours; the rest is not.
function visibleLine(line: string): string {
  const text = line.trimStart();
  return line.slice(0, line.length - text.length) + visible(text);
}
