/** The file through which a unit gets its environment: systemd reads it as root, nobody else can. */
import { isVariableName } from "../shell_env.ts";

/**
 * Lines of an EnvironmentFile, sorted by name. Names that no environment can hold are left out; see
 * `isVariableName`. A value ends at a NUL: no environment can hold one.
 */
export function environmentFile(env: Readonly<Record<string, string>>): string {
  return Object.entries(env)
    .filter(([name]) => isVariableName(name))
    .sort(([a], [b]) => a < b ? -1 : 1)
    .map(([name, value]) => `${name}="${quoted(value.replace(/\0.*$/s, ""))}"\n`)
    .join("");
}

// Inside of double quotes systemd takes everything as it is, line ends too, but for these.
function quoted(value: string): string {
  return value.replaceAll(/["\\`$]/g, "\\$&");
}
