/** `ctl capacity`: how much of a shape of requests the fleet carries, what holds it, what a node adds. */
import { buildCommand } from "@stricli/core";
import { SHAPES } from "../../bench/shape.ts";
import { shapeName } from "../../bench/shape_named.ts";
import { capacityListing } from "../../capacity/capacity_listing.ts";
import {
  type CtlContext,
  LIST_ALIASES,
  LIST_FLAGS,
  type ListFlags,
  outputOf,
  YES_FLAG,
} from "../../command.ts";
import { writeListing } from "../../table.ts";
import { show } from "../../watch.ts";
import { applyWeights, fetchCapacity } from "./apply_weights.ts";

interface CapacityFlags extends ListFlags {
  readonly shape: string;
  readonly apply: boolean;
  readonly yes: boolean;
}

export const capacity = buildCommand({
  docs: {
    brief: "How many requests a second the fleet carries, what holds it, what one more node adds",
    fullDescription:
      "Reckons with what bench has measured and control has stored: replicas times what one of them " +
      "carries within its promise. What nobody measured counts as nothing, and is said.",
  },
  parameters: {
    flags: {
      ...LIST_FLAGS,
      ...YES_FLAG,
      shape: {
        kind: "parsed",
        parse: String,
        default: "chat",
        placeholder: "shape",
        brief: `${SHAPES.join(", ")}, or the file that bench was given`,
      },
      apply: {
        kind: "boolean",
        default: false,
        brief: "Set the weights of the model's profiles by what was measured",
      },
    },
    aliases: LIST_ALIASES,
    positional: {
      kind: "tuple",
      parameters: [{
        brief: "Name or alias of the model; without one, all of them",
        parse: String,
        placeholder: "model",
        optional: true,
      }],
    },
  },
  async func(this: CtlContext, flags: CapacityFlags, model?: string) {
    const shape = shapeName(flags.shape);
    if (flags.apply) {
      if (model === undefined) {
        throw new SyntaxError("--apply wants the model whose weights it sets");
      }
      await applyWeights(this, flags, { model, shape });
      return;
    }
    await show(this, flags, async () => {
      const models = await fetchCapacity(this, flags, { model: model ?? "", shape });
      return (io) => writeListing(io, capacityListing(models), outputOf(flags));
    });
  },
});
