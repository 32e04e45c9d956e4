/** Text as one word of a command line, for an operator to paste; quoted only where it must be. */
export function shellWord(text: string): string {
  return /^[\w./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
