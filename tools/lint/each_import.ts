/** One visitor for every way that a file can name another module. */

/** One import, re-export, dynamic import or `import("…")` type. */
export interface Import {
  readonly node: Deno.lint.Node;
  readonly specifier: string;
  /** Vanishes when compiled: `import type`, or every name in the braces marked `type`. */
  readonly typeOnly: boolean;
}

/** Calls `visit` for each import of a file, in the order of the source. */
export function eachImport(visit: (found: Import) => void): Deno.lint.LintVisitor {
  return {
    ImportDeclaration(node) {
      const typeOnly = node.importKind === "type" ||
        (node.specifiers.length > 0 &&
          node.specifiers.every((s) => s.type === "ImportSpecifier" && s.importKind === "type"));
      visit({ node, specifier: node.source.value, typeOnly });
    },
    ExportNamedDeclaration(node) {
      if (node.source === null) return;
      const typeOnly = node.exportKind === "type" ||
        (node.specifiers.length > 0 && node.specifiers.every((s) => s.exportKind === "type"));
      visit({ node, specifier: node.source.value, typeOnly });
    },
    ExportAllDeclaration(node) {
      visit({ node, specifier: node.source.value, typeOnly: node.exportKind === "type" });
    },
    ImportExpression(node) {
      if (node.source.type !== "Literal" || typeof node.source.value !== "string") return;
      visit({ node, specifier: node.source.value, typeOnly: false });
    },
    TSImportType(node) {
      const specifier = stringOf(node.argument);
      if (specifier !== undefined) visit({ node, specifier, typeOnly: true });
    },
  };
}

function stringOf(type: Deno.lint.TypeNode): string | undefined {
  if (type.type !== "TSLiteralType" || type.literal.type !== "Literal") return undefined;
  return typeof type.literal.value === "string" ? type.literal.value : undefined;
}
