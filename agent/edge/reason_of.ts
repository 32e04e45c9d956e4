/** An error's own words, without Deno's advice to whoever types commands: operators edit files. */
export function reasonOf(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  return message.replace(/, (?:run again with|specify) the .*$/s, "");
}
