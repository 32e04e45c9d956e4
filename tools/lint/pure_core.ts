import { type Place, placeOf, ROOMS } from "./place.ts";

/** Folders of common that cores import to decide with. */
const PURE_COMMON = /^common\/model\//;

const TIME = "core has no clock. Take `now: EpochMs` as the last argument";
const CHANCE = "core has no randomness. Derive it from an id by a hash, or have edge/ pass it in";
const EFFECT = "core does no I/O. Return what should happen as data and let edge/ do it";
const LATER = "core is synchronous. Return the time to wake (`wakeAt`) or an effect as data";

/** Globals that core may not touch, each with what to do instead. */
const GLOBALS: ReadonlyMap<string, string> = new Map([
  ["Deno", EFFECT],
  ["process", EFFECT],
  ["globalThis", EFFECT],
  ["fetch", EFFECT],
  ["WebSocket", EFFECT],
  ["Worker", EFFECT],
  ["localStorage", EFFECT],
  ["performance", TIME],
  ["Temporal", TIME],
  ["crypto", CHANCE],
  ["console", "core logs nothing. Return an outcome with its reason and let the caller log it"],
  ["Promise", LATER],
  ["setTimeout", LATER],
  ["setInterval", LATER],
  ["setImmediate", LATER],
  ["clearTimeout", LATER],
  ["clearInterval", LATER],
  ["queueMicrotask", LATER],
]);

/**
 * Keeps `core/` pure: no Deno, clock, randomness, timers, I/O, console, or anything asynchronous. A
 * decision then depends on its arguments alone, and a property test can try it a thousand times a
 * second. `new Date(ms)` with an argument is fine: it only converts. So is a file's own variable that
 * is called like a global (`process`): a name that the file declares anywhere is not judged.
 *
 * Exceptions: what is there for tests.
 */
export function pureCore(root: string): Deno.lint.Rule {
  return {
    create(ctx) {
      const place = placeOf(ctx.filename, root);
      if (
        place === undefined || place.test || !isPure(place)
      ) return {};
      const report = (node: Deno.lint.Node, what: string, instead: string): void =>
        ctx.report({ node, message: `${what}: ${instead}` });
      const declared = new Set<string>();
      const used: Deno.lint.Identifier[] = [];
      return {
        Identifier(node) {
          if (!GLOBALS.has(node.name)) return;
          if (isDeclaration(node)) declared.add(node.name);
          else if (isReference(node)) used.push(node);
        },
        "Program:exit"() {
          for (const node of used.filter(({ name }) => !declared.has(name))) {
            report(node, node.name, GLOBALS.get(node.name) ?? EFFECT);
          }
        },
        MemberExpression(node) {
          const name = staticName(node);
          if (name === "Date.now") report(node, name, TIME);
          if (name === "Math.random") report(node, name, CHANCE);
        },
        NewExpression(node) {
          if (isDate(node.callee) && node.arguments.length === 0) report(node, "new Date()", TIME);
        },
        CallExpression(node) {
          if (isDate(node.callee)) report(node, "Date()", TIME);
        },
        ":matches(FunctionDeclaration, FunctionExpression, ArrowFunctionExpression)[async=true]"(
          node: Deno.lint.Node,
        ) {
          report(node, "async function", LATER);
        },
        AwaitExpression: (node) => report(node, "await", LATER),
        ForOfStatement(node) {
          if (node.await) report(node, "for await", LATER);
        },
        ImportExpression: (node) => report(node, "import()", LATER),
      };
    },
  };
}

function isPure({ room, layer, path }: Place): boolean {
  return PURE_COMMON.test(path) || (layer === "core" && ROOMS.includes(room));
}

/** Whether an identifier gives a variable, parameter or import its name. */
function isDeclaration(node: Deno.lint.Identifier): boolean {
  const parent: Deno.lint.Node = node.parent;
  switch (parent.type) {
    case "VariableDeclarator":
      return same(parent.id, node);
    case "FunctionDeclaration":
    case "FunctionExpression":
    case "ArrowFunctionExpression":
    case "TSFunctionType":
    case "TSMethodSignature":
      return parent.params.some((param) => same(param, node));
    case "Property":
      return parent.parent.type === "ObjectPattern" && same(parent.value, node);
    case "AssignmentPattern":
      return same(parent.left, node);
    case "ArrayPattern":
    case "RestElement":
      return true;
    case "ImportSpecifier":
    case "ImportDefaultSpecifier":
    case "ImportNamespaceSpecifier":
      return same(parent.local, node);
    default:
      return false;
  }
}

/** Whether an identifier stands for a value or type of that name, and not for a member or a key. */
function isReference(node: Deno.lint.Identifier): boolean {
  const parent: Deno.lint.Node = node.parent;
  switch (parent.type) {
    case "MemberExpression":
      return same(parent.object, node) || parent.computed;
    case "TSQualifiedName":
      return same(parent.left, node);
    case "Property":
      if (parent.shorthand) return true;
      return parent.computed || !same(parent.key, node);
    case "PropertyDefinition":
    case "MethodDefinition":
    case "TSPropertySignature":
    case "TSMethodSignature":
      return parent.computed || !same(parent.key, node);
    case "ImportSpecifier":
    case "ExportSpecifier":
      return false;
    default:
      return true;
  }
}

function same(a: { range: Deno.lint.Range }, b: Deno.lint.Node): boolean {
  return a.range[0] === b.range[0] && a.range[1] === b.range[1];
}

function isDate(callee: Deno.lint.Node): boolean {
  return callee.type === "Identifier" && callee.name === "Date";
}

/** `a.b` or `a["b"]` as "a.b", when both are plain names. */
function staticName(node: Deno.lint.MemberExpression): string | undefined {
  if (node.object.type !== "Identifier") return undefined;
  if (!node.computed && node.property.type === "Identifier") {
    return `${node.object.name}.${node.property.name}`;
  }
  if (node.computed && node.property.type === "Literal") {
    return `${node.object.name}.${String(node.property.value)}`;
  }
  return undefined;
}
