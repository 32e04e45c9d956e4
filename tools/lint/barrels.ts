import { placeOf } from "./place.ts";

/**
 * No barrel files: a file that only passes on what others define hides where things live, invites
 * cycles and makes every check read more. `proto/deno.json` and `common/deno.json` are the front
 * doors. A file counts as a barrel when every statement imports or re-exports. `export {};` alone
 * passes nothing on.
 */
export function barrels(root: string): Deno.lint.Rule {
  return {
    create(ctx) {
      if (placeOf(ctx.filename, root) === undefined) return {};
      return {
        Program(node) {
          if (!node.body.every(passesOn) || !node.body.some(exportsNames)) return;
          ctx.report({
            node,
            message: "This file only re-exports: import the file that defines the name, and " +
              'delete this one (shared files are listed in "exports" of their deno.json)',
          });
        },
      };
    },
  };
}

function passesOn(statement: Deno.lint.Statement): boolean {
  return statement.type === "ImportDeclaration" || exportsNames(statement) ||
    (statement.type === "ExportNamedDeclaration" && statement.declaration === null);
}

function exportsNames(statement: Deno.lint.Statement): boolean {
  if (statement.type === "ExportAllDeclaration") return true;
  return statement.type === "ExportNamedDeclaration" && statement.declaration === null &&
    statement.specifiers.length > 0;
}
