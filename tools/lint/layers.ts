import { eachImport } from "./each_import.ts";
import { type Place, placeOf, placeOfPath, pointsDown, ROOMS } from "./place.ts";
import { targetOf } from "./target.ts";

/** The one package that core may import: it decodes documents, and does nothing else. */
const CORE_PACKAGES: readonly string[] = ["zod"];

/** Members of common that act on the world, so that core may not have them. */
const EFFECTS_IN_COMMON: readonly string[] = ["log"];

/**
 * Arrows inside a room: root → edge → engines → core. Edge never imports its room's root: it says
 * in its own file what it needs and main.ts hands it over. Core imports core, proto, what is pure in
 * common, and zod, so that every decision can be replayed from its arguments.
 *
 * Exceptions: what is there for tests imports any layer of its own room, and any package.
 * A type-only import of a package is free anywhere: it leaves nothing behind.
 */
export function layers(root: string): Deno.lint.Rule {
  return {
    create(ctx) {
      const place = placeOf(ctx.filename, root);
      if (place === undefined || place.test || !ROOMS.includes(place.room)) return {};
      return eachImport(({ node, specifier, typeOnly }) => {
        const breach = breachOf(place, specifier, typeOnly);
        if (breach !== undefined) {
          ctx.report({ node, message: `${place.layer} imports "${specifier}": ${breach}` });
        }
      });
    },
  };
}

function breachOf(place: Place, specifier: string, typeOnly: boolean): string | undefined {
  const target = targetOf(specifier, place.path);
  if (target.kind === "file") {
    const to = placeOfPath(target.path);
    if (to.room !== place.room) return undefined;
    if (to.test) return "only tests import a fake. Pass the real one in from main.ts";
    if (pointsDown(place.layer, to.layer)) return undefined;
    return place.layer === "core"
      ? `core imports only core. Take the value as an argument, or move the decision here`
      : `${place.layer} is below ${to.layer}. Declare the small interface it needs in this file ` +
        `and let main.ts pass it in`;
  }
  if (place.layer !== "core") return undefined;
  if (target.kind === "node") {
    return "core has no node:* modules. Do it in edge/ and pass in the result, or a function";
  }
  if (target.kind === "package" && !typeOnly && !CORE_PACKAGES.includes(target.name)) {
    return `core may import only ${CORE_PACKAGES.join(", ")}. Pass in a function from the root`;
  }
  if (
    target.kind === "member" && target.member === "common" &&
    EFFECTS_IN_COMMON.includes(target.path)
  ) {
    return "core logs nothing. Return an outcome with its reason and let the caller log it";
  }
  return undefined;
}
