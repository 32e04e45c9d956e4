import { eachImport } from "./each_import.ts";
import { placeOf, ROOMS } from "./place.ts";
import { targetOf } from "./target.ts";

/**
 * Generated code is the wire's shape. Its values (schemas, enums, services) are for whoever encodes
 * and decodes: proto/, common/, edge/ and the files at a room's root, where services are wired.
 * `import type` from it is free everywhere, so that a wire noun needs no second declaration.
 * What remains forbidden is core or engines/ computing with generated values: an enum's number there
 * would be a second vocabulary beside the closed unions that decode makes of it.
 *
 * Exceptions: what is there for tests, which builds messages.
 */
export function genValues(root: string): Deno.lint.Rule {
  return {
    create(ctx) {
      const place = placeOf(ctx.filename, root);
      if (place === undefined || place.test || !ROOMS.includes(place.room)) return {};
      if (place.layer === "root" || place.layer === "edge") return {};
      return eachImport(({ node, specifier, typeOnly }) => {
        const target = targetOf(specifier, place.path);
        if (target.kind !== "member" || target.member !== "proto" || typeOnly) return;
        if (target.path !== "gen" && !target.path.startsWith("gen/")) return;
        ctx.report({
          node,
          message: `${place.layer} imports values of "${specifier}": write \`import type\`, or ` +
            "decode the message into our own words in proto/ and import those",
        });
      });
    },
  };
}
