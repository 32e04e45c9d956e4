/** Operators' catalogs: what one would come to, and acting on it. */
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { formatComplaints } from "@heddle/common/config_file";
import { HeddleError } from "@heddle/proto/error";
import {
  type ApplyCatalogRequest,
  type ApplyCatalogResponse,
  ApplyCatalogResponseSchema,
  type CatalogPlan as WireCatalogPlan,
  CatalogPlanSchema,
  type GetCatalogResponse,
  GetCatalogResponseSchema,
  type PlanCatalogRequest,
} from "@heddle/proto/gen/admin";
import { type Catalog, parseCatalog } from "../../core/catalog.ts";
import { type CatalogPlan, catalogPlan } from "../../core/catalog/catalog_plan.ts";
import { judgeCatalog } from "../../core/catalog/judge_catalog.ts";
import type { CatalogApplied } from "../../core/event.ts";
import { settled, unheard } from "../../core/facts/settled.ts";
import type { World } from "../../core/world.ts";
import type { CatalogFileStatus } from "../catalog_watch.ts";
import { foresee } from "../foresee.ts";

/** A catalog of 10,000 profiles has some 5 MB. */
const TEXT_CHARS_MAX = 16_000_000;

/** The single writer. `now` is its clock. */
export interface CatalogLoop {
  dispatch(event: CatalogApplied): Promise<void>;
  world(): World;
  now(): number;
}

/** What is acted on, and how the file stands against it. */
export function catalogState(
  { catalog: { catalog, text, revision } }: World,
  { file, state, detail }: CatalogFileStatus,
  withText: boolean,
): GetCatalogResponse {
  return create(GetCatalogResponseSchema, {
    revision: BigInt(revision),
    models: catalog.models.length,
    text: withText ? text : "",
    file,
    fileState: state,
    fileDetail: detail,
  });
}

/** Says what the catalog would come to. Throws `invalid_input` with every complaint and its place. */
export async function planText(
  loop: CatalogLoop,
  { text, file }: PlanCatalogRequest,
): Promise<WireCatalogPlan> {
  const catalog = parsed("plan", text, file);
  const [world, now] = [loop.world(), loop.now()];
  if (!settled(world, now)) {
    throw new HeddleError(
      "failed_precondition",
      `Cannot plan yet: control has just begun to lead, and ${unheard(world).length} known nodes ` +
        "have not registered. Try again in a minute",
    );
  }
  const plan = catalogPlan(world, await foresee(world, catalog, now));
  const verdict = judgeCatalog(world, catalog, now);
  return encodePlan(plan, {
    revision: BigInt(world.catalog.revision),
    ...(verdict.kind === "wait" ? { waitReason: verdict.reason, waitDetail: verdict.detail } : {}),
  });
}

/** What would come, for the wire; `about` is what a plan alone does not know. */
export function encodePlan(
  plan: CatalogPlan,
  about: Pick<MessageInitShape<typeof CatalogPlanSchema>, "revision" | "waitReason" | "waitDetail">,
): WireCatalogPlan {
  return create(CatalogPlanSchema, {
    ...about,
    changes: plan.changes.map((change) => ({ ...change, parts: [...change.parts] })),
    starts: plan.starts.map((start) => ({ ...start, nodes: [...start.nodes] })),
    stops: plan.stops.map((stop) => ({ ...stop, nodes: [...stop.nodes] })),
    kept: plan.kept,
    shortages: plan.shortages.map((shortage) => ({ ...shortage })),
    incomplete: plan.incomplete,
  });
}

/** Stores and applies, unless it needs a yes that was not said. Throws as `planText`, and `system`. */
export async function applyText(
  loop: CatalogLoop,
  { text, file, yes }: ApplyCatalogRequest,
  by: string,
): Promise<ApplyCatalogResponse> {
  const catalog = parsed("apply", text, file);
  const current = loop.world().catalog;
  const done = (revision: number) =>
    create(ApplyCatalogResponseSchema, { applied: true, revision: BigInt(revision) });
  if (text === current.text && current.revision > 0) return done(current.revision);
  const verdict = judgeCatalog(loop.world(), catalog, loop.now());
  if (verdict.kind === "wait" && !yes) {
    return create(ApplyCatalogResponseSchema, {
      applied: false,
      revision: BigInt(current.revision),
      waitReason: verdict.reason,
      waitDetail: verdict.detail,
    });
  }
  const revision = current.revision + 1;
  await loop.dispatch({ kind: "catalog_applied", catalog: { catalog, text, revision }, by });
  return done(revision);
}

function parsed(action: string, text: string, file: string): Catalog {
  if (text.length > TEXT_CHARS_MAX) {
    throw new HeddleError(
      "invalid_input",
      `Cannot ${action} ${file}: it has more than ${TEXT_CHARS_MAX} characters`,
    );
  }
  const result = parseCatalog(text, file === "" ? "catalog" : file);
  if (result.kind === "ok") return result.value;
  throw new HeddleError("invalid_input", formatComplaints(result.complaints));
}
