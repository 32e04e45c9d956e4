import { placeOf, ROOMS, SHARED } from "./place.ts";

/**
 * What `using` holds must be used more than once, or not right away. The bundler that makes releases
 * puts a value that is used once, in the very next statement, into its place, and forgets that it
 * was to be disposed of: `using c = open(); return c.x` becomes `return open().x`, and c stays open.
 * Where that would be so, write `try`/`finally`.
 */
export function lastingUsing(root: string): Deno.lint.Rule {
  return {
    create(ctx) {
      const place = placeOf(ctx.filename, root);
      // Tests and tools are never bundled.
      if (place === undefined || place.test || ![...ROOMS, ...SHARED].includes(place.room)) {
        return {};
      }
      return {
        BlockStatement(node) {
          for (const [index, statement] of node.body.entries()) {
            const name = nameUsed(statement);
            const next = node.body[index + 1];
            if (name === undefined || next === undefined) continue;
            const uses = (rest: Deno.lint.Node) => countWord(ctx.sourceCode.getText(rest), name);
            const all = node.body.slice(index + 1).reduce((sum, rest) => sum + uses(rest), 0);
            if (all !== 1 || uses(next) !== 1) continue;
            ctx.report({
              node: statement,
              message: `"${name}" is used once, right here: the bundler would drop what disposes ` +
                "of it. Write try/finally",
            });
          }
        },
      };
    },
  };
}

function nameUsed(statement: Deno.lint.Statement): string | undefined {
  if (statement.type !== "VariableDeclaration" || !statement.kind.endsWith("using")) {
    return undefined;
  }
  const id = statement.declarations[0]?.id;
  return id?.type === "Identifier" ? id.name : undefined;
}

function countWord(text: string, word: string): number {
  return text.split(/[^\w$]+/).filter((each) => each === word).length;
}
