/**
 * What an operator's decision would come to, without making it: the decision is taken on a copy of
 * the world, and control's own passes are made on that, as for a catalog that is planned.
 */
import { HeddleError } from "@heddle/proto/error";
import { z } from "zod";
import type { OperatorEvent } from "../../core/event.ts";
import type { World } from "../../core/world.ts";
import { foreseeDecision } from "../foresee.ts";
import type { Preview } from "./wire.ts";

const name = z.string().min(1).max(256);

/** The decisions that can be foreseen, as the page asks for them. */
const askedSchema = z.discriminatedUnion("kind", [
  z.strictObject({ kind: z.enum(["cordon", "drain", "uncordon"]), node: name }),
  z.strictObject({ kind: z.enum(["pause", "resume", "clear_scale"]), model: name }),
  z.strictObject({
    kind: z.literal("scale"),
    model: name,
    replicas: z.int().min(0).max(10_000),
  }),
  z.strictObject({ kind: z.enum(["restart", "stop", "stop_at_once"]), replica: name }),
]);

/** Foresees a decision. Throws `invalid_input` for one that is none, `failed_precondition` before control is settled. */
export async function preview(world: World, asked: unknown, now: number): Promise<Preview> {
  const parsed = askedSchema.safeParse(asked);
  if (!parsed.success) {
    throw new HeddleError("invalid_input", `Cannot foresee this: ${z.prettifyError(parsed.error)}`);
  }
  const event = { by: "preview", reason: "", ...parsed.data } satisfies OperatorEvent;
  const plan = await foreseeDecision(world, event, now);
  const { starts, stops, kept, shortages, incomplete } = plan;
  return {
    starts,
    stops: stops.map(({ replicaId, ...stop }) => ({ ...stop, id: replicaId })),
    kept,
    shortages,
    incomplete,
  };
}
