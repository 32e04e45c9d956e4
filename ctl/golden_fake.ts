/** Output of commands for tests: a list in every form, as a terminal and as a pipe get it. */
import type { Io } from "./io.ts";
import type { runApp } from "./testing/app_fake.ts";
import { type Listing, type Output, OUTPUTS, writeListing } from "./table.ts";

export interface Captured extends Io {
  readonly text: () => string;
}

export function capture(terminal: boolean, color = false): Captured {
  let text = "";
  const out = (more: string) => void (text += more);
  return { terminal, color, out, err: () => {}, text: () => text };
}

/** What a terminal gets. */
export function written<Row>(listing: Listing<Row>, output: Output, terminal = true): string {
  const io = capture(terminal);
  writeListing(io, listing, output);
  return io.text();
}

/** Every form by its name, and `pipe`, what a pipe gets of the table. */
export function everyForm<Row>(listing: Listing<Row>): Readonly<Record<Output | "pipe", string>> {
  const form = (output: Output) => written(listing, output);
  const [table, wide, json, yaml, csv] = OUTPUTS.map(form);
  return {
    table: table ?? "",
    wide: wide ?? "",
    json: json ?? "",
    yaml: yaml ?? "",
    csv: csv ?? "",
    pipe: written(listing, "table", false),
  };
}

/** The same of a command line that lists. */
export async function everyFormOf(
  run: typeof runApp,
  args: readonly string[],
): Promise<Readonly<Record<Output | "pipe", string>>> {
  const form = async (output: Output, terminal = true) =>
    (await run([...args, "-o", output], { terminal })).out;
  const [table = "", wide = "", json = "", yaml = "", csv = ""] = await Promise.all(
    OUTPUTS.map((output) => form(output)),
  );
  return { table, wide, json, yaml, csv, pipe: await form("table", false) };
}
