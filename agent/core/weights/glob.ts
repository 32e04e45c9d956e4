/** Patterns for files of a repository: `*` and `?` inside a name or over folders, `[ab]` for one of. */

/** Whether `path`, or its last part when the pattern has no slash, is as the pattern says. */
export function matchesGlob(pattern: string, path: string): boolean {
  const expression = new RegExp(`^${[...pattern].map(translate).join("")}$`, "s");
  if (expression.test(path)) return true;
  return !pattern.includes("/") && expression.test(path.slice(path.lastIndexOf("/") + 1));
}

function translate(sign: string): string {
  if (sign === "*") return ".*";
  if (sign === "?") return ".";
  return sign === "[" || sign === "]" ? sign : sign.replace(/[\\^$.|+(){}]/, "\\$&");
}

/** Undefined when it can be used; else why not. */
export function globProblem(pattern: string): string | undefined {
  if (pattern === "" || pattern.length > 200) return "want 1 to 200 characters";
  try {
    matchesGlob(pattern, "");
    return undefined;
  } catch {
    return "its brackets do not match";
  }
}
