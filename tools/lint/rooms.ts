import { eachImport } from "./each_import.ts";
import { type Place, placeOf, placeOfPath, ROOMS, SHARED } from "./place.ts";
import { type Target, targetOf } from "./target.ts";

/**
 * Arrows between rooms. router, control, agent, ctl and sim import themselves, `@heddle/proto/*`,
 * `@heddle/common/*`, packages named in deno.json, and `node:*`; common imports itself and proto;
 * proto imports itself. Why: what two programs share must be small, named, and in one place.
 *
 * Exceptions: what is there for tests (`isForTests`) may also import from `tests/`.
 * `tests/` and `tools/` may import anything. Nothing lifts the ban on another room: a test that
 * crosses programs belongs in `tests/`.
 */
export function rooms(root: string, packages: readonly string[]): Deno.lint.Rule {
  return {
    create(ctx) {
      const place = placeOf(ctx.filename, root);
      if (place === undefined || !(ROOMS.includes(place.room) || SHARED.includes(place.room))) {
        return {};
      }
      return eachImport(({ node, specifier }) => {
        const breach = breachOf(place, targetOf(specifier, place.path), packages);
        if (breach !== undefined) {
          ctx.report({ node, message: `${place.room} imports "${specifier}": ${breach}` });
        }
      });
    },
  };
}

function breachOf(
  place: Place,
  target: Target,
  packages: readonly string[],
): string | undefined {
  switch (target.kind) {
    case "node":
      return undefined;
    case "outside":
      return "it lies outside the repository. Name a package in deno.json, or move the file in";
    case "url":
      return `a ${target.scheme}: address in code is pinned nowhere. Add the package to "imports" ` +
        `in the root deno.json and import it by its bare name`;
    case "package":
      if (packages.includes(target.name)) return undefined;
      return `"${target.name}" is not in "imports" of the root deno.json. Add it there, pinned, or ` +
        `do without`;
    case "member":
      return memberBreach(place, target.member);
    case "file":
      return fileBreach(place, placeOfPath(target.path));
    default:
      return target satisfies never;
  }
}

function memberBreach(place: Place, member: string): string | undefined {
  if (!SHARED.includes(member)) {
    return `only ${SHARED.map((s) => `@heddle/${s}/…`).join(" and ")} can be imported by name`;
  }
  if (place.room === "proto" && member !== "proto") {
    return "proto imports nothing of ours. Move what both need into proto, or this file into common";
  }
  return undefined;
}

function fileBreach(place: Place, to: Place): string | undefined {
  if (to.room === place.room) return undefined;
  if (place.test && to.room === "tests") return undefined;
  if (SHARED.includes(to.room)) {
    return `a relative path leaves ${place.room}. Write @heddle/${to.room}/… and add the file to ` +
      `"exports" in ${to.room}/deno.json`;
  }
  if (ROOMS.includes(to.room)) {
    return `a room never imports another. Move what both need to common/ or proto/, or say it over ` +
      `the wire; a test of both belongs in tests/`;
  }
  return `a relative path leaves ${place.room}. Only tests and fakes may reach into tests/; move ` +
    `what the program needs into ${place.room}/ or common/`;
}
