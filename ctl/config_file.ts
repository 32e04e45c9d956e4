/** ctl's configuration as a file that commands show and change. All else of it stays as it is. */
import { isScalar, parseDocument, stringify } from "yaml";
import { writeFileAtomic } from "@heddle/common/atomic_file";
import { errorText, HeddleError } from "@heddle/proto/error";
import type { CtlConfig } from "./config.ts";

export interface CtlConfigFile {
  readonly file: string;
  readonly config: CtlConfig;
}

/** The same text with another current context. Throws `not_found` for one that is not in it. */
export function withCurrent(text: string, { file, config }: CtlConfigFile, name: string): string {
  const names = config.contexts.map((context) => context.name);
  if (!names.includes(name)) {
    throw new HeddleError(
      "not_found",
      `No context "${name}" in ${file}: it has ${names.join(", ")}`,
    );
  }
  // Only this word is written anew: whoever wrote the file knows it again.
  const current = parseDocument(text).get("current", true);
  const [start, end] = isScalar(current) ? current.range ?? [] : [];
  if (start === undefined || end === undefined) {
    throw new HeddleError("invalid_input", `Cannot change ${file}: it says no current context`);
  }
  return `${text.slice(0, start)}${stringify(name).trimEnd()}${text.slice(end)}`;
}

/** Keeps the file's mode. Throws `system` where it may not be written. */
export async function useContext(at: CtlConfigFile, name: string): Promise<void> {
  try {
    const text = withCurrent(await Deno.readTextFile(at.file), at, name);
    const mode = (await Deno.stat(at.file)).mode;
    await writeFileAtomic(at.file, text, mode === null ? {} : { mode: mode & 0o777 });
  } catch (error) {
    if (error instanceof HeddleError) throw error;
    throw new HeddleError(
      "system",
      `Cannot change ${at.file}: ${errorText(error)}. With --context ${name} one command uses it`,
      { cause: error },
    );
  }
}
