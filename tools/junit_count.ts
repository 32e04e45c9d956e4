/**
 * Counts a JUnit report, for the one closing line that a person or a machine reads:
 *
 *     deno run -P=tools tools/junit_count.ts .heddle/junit.xml --status 0
 *     412 passed, 0 failed, 3 skipped
 *
 * `--status` is the exit status of what ran before, because a report can be silent about a failure:
 * a test file that throws while it loads appears in none, and one that does not compile leaves no
 * report at all. Exits 1 when something failed, when that status is not 0, or when no test ran.
 */
import { runTool, say } from "./say.ts";

/** How many tests of a report ended in which way. Steps count as tests of their own, as in the report. */
export interface Count {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

/** Counts the test cases of a JUnit report. Throws when the report was cut short. */
export function countJunit(xml: string): Count {
  const ended = /<\/testsuites>\s*$|<testsuites\b[^>]*\/>\s*$|<\/testsuite>\s*$/.test(xml);
  if (!ended) throw new Error("the report has no end: whoever wrote it was stopped");
  let [passed, failed, skipped] = [0, 0, 0];
  for (const { body } of testCases(xml)) {
    if (FAILURE.test(body)) failed++;
    else if (/<skipped\b/.test(body)) skipped++;
    else passed++;
  }
  return { passed, failed, skipped };
}

/** What failed, each with its file, its name, and the beginning of what was said of it. */
export function failuresOf(xml: string): readonly string[] {
  return testCases(xml).filter(({ body }) => FAILURE.test(body)).map(({ head, body }) => {
    const [, file = ""] = head.match(/classname="([^"]*)"/) ?? [];
    const [, name = ""] = head.match(/\bname="([^"]*)"/) ?? [];
    const [, said = ""] = body.match(/message="([^"]*)"/) ?? [];
    const text = body.replace(/<[^>]*>/g, "").trim() || said;
    return unescape(`${file}: ${name}\n${text.slice(0, TOLD_CHARS_MAX)}`);
  });
}

/** Of one failure. */
const TOLD_CHARS_MAX = 600;
const FAILURE = /<(?:failure|error)\b/;

// No parser needed: "<" and ">" inside names and messages are escaped in XML.
function testCases(xml: string): readonly { readonly head: string; readonly body: string }[] {
  const cases = xml.matchAll(/<testcase\b([^>]*?)(?:\/>|>([^]*?)<\/testcase>)/g);
  return Array.from(cases, ([, head = "", body = ""]) => ({ head, body }));
}

const ENTITIES: Readonly<Record<string, string>> = {
  lt: "<",
  gt: ">",
  quot: '"',
  apos: "'",
  amp: "&",
};

function unescape(text: string): string {
  return text.replace(/&(lt|gt|quot|apos|amp);/g, (_, name: string) => ENTITIES[name] ?? "")
    .replace(
      /&#(?:x([0-9a-f]+)|([0-9]+));/gi,
      (_, hex: string | undefined, decimal: string) =>
        String.fromCodePoint(hex === undefined ? Number(decimal) : Number.parseInt(hex, 16)),
    );
}

/** The count that counts: a failure that the report does not show is one failure more. */
export function judge(count: Count, status: number): Count {
  const silent = count.failed === 0 && (status !== 0 || count.passed === 0);
  return silent ? { ...count, failed: 1 } : count;
}

/** `N passed, N failed`, with `, N skipped` when there are any. */
export function formatCount({ passed, failed, skipped }: Count): string {
  const line = `${passed} passed, ${failed} failed`;
  return skipped > 0 ? `${line}, ${skipped} skipped` : line;
}

function sum(one: Count, other: Count): Count {
  return {
    passed: one.passed + other.passed,
    failed: one.failed + other.failed,
    skipped: one.skipped + other.skipped,
  };
}

async function read(path: string): Promise<Count> {
  try {
    const xml = await Deno.readTextFile(path);
    for (const failure of failuresOf(xml)) say(`failed: ${failure}\n`);
    return countJunit(xml);
  } catch (error) {
    say(`No count in ${path}: ${error instanceof Error ? error.message : String(error)}`);
    return { passed: 0, failed: 0, skipped: 0 };
  }
}

if (import.meta.main) {
  await runTool(async () => {
    const [flag, status] = Deno.args.slice(-2);
    const paths = Deno.args.slice(0, -2);
    if (paths.length === 0 || flag !== "--status" || !/^\d+$/.test(status ?? "")) {
      throw new Error("Usage: junit_count.ts REPORT… --status EXIT_STATUS");
    }
    const counts = await Promise.all(paths.map(read));
    const count = judge(counts.reduce(sum), Number(status));
    say(formatCount(count));
    if (count.failed > 0) Deno.exitCode = 1;
  });
}
