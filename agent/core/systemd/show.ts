/** What `systemctl show` prints. */

/** One unit's properties by name. */
export type Properties = Readonly<Record<string, string>>;

/**
 * Units of an answer: blocks of NAME=VALUE, apart by an empty line, in an order of systemd's own. A
 * name that is there twice has its values joined by a line end.
 */
export function parseShow(text: string): readonly Properties[] {
  return text.split(/\n\n+/).map((block) => {
    const properties: Record<string, string> = {};
    for (const line of block.split("\n")) {
      const at = line.indexOf("=");
      if (at <= 0) continue;
      const [name, value] = [line.slice(0, at), line.slice(at + 1)];
      const before = properties[name];
      properties[name] = before === undefined ? value : `${before}\n${value}`;
    }
    return properties;
  }).filter((properties) => Object.keys(properties).length > 0);
}

/** The path in `EnvironmentFiles=/path/env (ignore_errors=no)`; undefined when there is none. */
export function environmentFileOf({ EnvironmentFiles }: Properties): string | undefined {
  return /^(\/.*) \(ignore_errors=(?:yes|no)\)$/.exec(EnvironmentFiles ?? "")?.[1];
}

/** A pid in a property; undefined for 0, which means none. */
export function pidIn(text: string | undefined): number | undefined {
  const pid = Number(text);
  return Number.isSafeInteger(pid) && pid > 0 ? pid : undefined;
}
