/** Reads a folder of cases. A line that is not wholly understood is refused, with the reason. */
import { z } from "zod";
import { type Case, type CasePart, caseSchema } from "./case_schema.ts";
import { CHECKS } from "./expect/checks.ts";

/** A line of cases.jsonl: a case, or why it is none. */
export type CaseLine =
  | { readonly kind: "case"; readonly case: Case }
  | { readonly kind: "refused"; readonly id: string; readonly why: string };

/** Reads `cases.jsonl` of a folder. One without a case is refused: nobody means that. */
export async function readCases(folder: string): Promise<CaseLine[]> {
  const text = await Deno.readTextFile(`${folder}/cases.jsonl`);
  const lines = text.split("\n").flatMap((line, index) =>
    line.trim() === "" ? [] : [readLine(line, index + 1)]
  );
  return lines.length > 0
    ? lines
    : [{ kind: "refused", id: "cases.jsonl", why: "it holds no case" }];
}

/** Reads one line; `number` names it when it has no id. */
export function readLine(line: string, number: number): CaseLine {
  let json: unknown;
  try {
    json = JSON.parse(line);
  } catch (error) {
    return { kind: "refused", id: `line ${number}`, why: String(error) };
  }
  const read = caseSchema.safeParse(json);
  const unknown = read.success ? unknownChecks(read.data) : [];
  if (read.success && unknown.length === 0) return { kind: "case", case: read.data };
  const id = z.object({ id: z.string() }).safeParse(json);
  const why = read.success
    ? unknown.map((key) => `expect.${key}: no check has this name`)
    : read.error.issues.map(({ path, message }) => `${path.join(".")}: ${message}`);
  return { kind: "refused", id: id.success ? id.data.id : `line ${number}`, why: why.join("; ") };
}

function unknownChecks(read: Case): string[] {
  const steps = (read.steps ?? []).filter((step): step is CasePart => typeof step !== "string");
  return [read, ...read.variants ?? [], ...steps]
    .flatMap(({ expect }) => Object.keys(expect ?? {}))
    .filter((key) => !Object.hasOwn(CHECKS, key));
}
