/**
 * `deno task cases [FOLDER]`: runs every case of a folder against the router and prints a line for
 * each. Exits with 1 when a case fails or is refused.
 */
import { fileURLToPath } from "node:url";
import { startLogging } from "@heddle/common/log";
import { type CaseLine, readCases } from "./read_cases.ts";
import { type CaseResult, runCase } from "./run_case.ts";

const FIXTURES = fileURLToPath(new URL("../fixtures/openai", import.meta.url));

/** Most cases spend their time waiting. */
const AT_ONCE = 4;

/** A case that measures memory must be alone. */
function isAlone(line: CaseLine): boolean {
  return line.kind === "case" && JSON.stringify(line.case).includes("peak_memory");
}

async function main(folder: string): Promise<number> {
  await startLogging({ format: "text", level: "error", write: () => {} });
  const lines = await readCases(folder);
  const counts = { pass: 0, fail: 0, not_yet: 0 };
  const run = async (line: CaseLine): Promise<void> => {
    const result: CaseResult = line.kind === "refused"
      ? { kind: "fail", problems: [`refused: ${line.why}`] }
      : await runCase(line.case, folder);
    counts[result.kind]++;
    print(line, result);
  };
  const waiting = lines.filter((line) => !isAlone(line));
  await Promise.all(Array.from({ length: AT_ONCE }, async () => {
    for (let line = waiting.shift(); line !== undefined; line = waiting.shift()) await run(line);
  }));
  for (const line of lines.filter(isAlone)) await run(line);
  write(`${counts.pass} passed, ${counts.fail} failed, ${counts.not_yet} not yet`);
  return counts.fail === 0 ? 0 : 1;
}

const WORDS = { pass: "pass   ", fail: "FAIL   ", not_yet: "not yet" } as const;

function print(line: CaseLine, result: CaseResult): void {
  const [id, title] = line.kind === "case" ? [line.case.id, line.case.title] : [line.id, ""];
  const why = result.kind === "not_yet" ? ` (needs ${result.why})` : "";
  write(`${WORDS[result.kind]} ${id.padEnd(5)} ${title}${why}`);
  if (result.kind === "fail") {
    for (const problem of result.problems) write(`          ${problem}`);
  }
}

function write(line: string): void {
  Deno.stdout.writeSync(new TextEncoder().encode(`${line}\n`));
}

if (import.meta.main) {
  const folder = Deno.args[0] ?? FIXTURES;
  try {
    Deno.exit(await main(folder));
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
    write(`Cannot read ${folder}/cases.jsonl: want a folder with cases.jsonl and its files`);
    Deno.exit(2);
  }
}
