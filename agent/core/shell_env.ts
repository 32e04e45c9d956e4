/** The file through which a process gets its environment: lines for a shell, and no argument shows it. */

const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;

/** Whether a shell can export a variable of that name. */
export function isVariableName(name: string): boolean {
  return NAME.test(name);
}

/**
 * Lines that export `env`, sorted by name. Names that no shell can export are left out; see
 * `isVariableName`. A value with a NUL cannot be in any environment: it ends there.
 */
export function shellEnv(env: Readonly<Record<string, string>>): string {
  return Object.entries(env)
    .filter(([name]) => isVariableName(name))
    .sort(([a], [b]) => a < b ? -1 : 1)
    .map(([name, value]) => `export ${name}=${shellQuote(value.replace(/\0.*$/s, ""))}\n`)
    .join("");
}

/** One word for a POSIX shell, whatever is in it. */
export function shellQuote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
