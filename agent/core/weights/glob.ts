/** Patterns for files of a repository: `*` and `?` inside a name or over folders, `[ab]` for one of. */

/** Whether `path`, or its last part when the pattern has no slash, is as the pattern says. */
export function matchesGlob(pattern: string, path: string): boolean {
  const expression = compiled(pattern);
  if (expression === undefined) return pattern === path;
  if (expression.test(path)) return true;
  return !pattern.includes("/") && expression.test(path.slice(path.lastIndexOf("/") + 1));
}

function translate(sign: string): string {
  if (sign === "*") return ".*";
  if (sign === "?") return ".";
  return sign === "[" || sign === "]" ? sign : sign.replace(/[\\^$.|+(){}]/, "\\$&");
}

// With brackets that do not match it is no pattern, and means what it says.
function compiled(pattern: string): RegExp | undefined {
  try {
    return new RegExp(`^${[...pattern].map(translate).join("")}$`, "s");
  } catch {
    return undefined;
  }
}
