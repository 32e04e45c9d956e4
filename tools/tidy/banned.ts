import { isFixture, isProduct, isWritten, type SourceFile } from "../repository.ts";

/** Something that may not be written, where, and what to write instead. */
interface Ban {
  readonly pattern: RegExp;
  readonly instead: string;
  readonly where: (path: string) => boolean;
}

/** Text that a person wrote, in any language. Locks, licences and this list itself are not judged. */
function isProse(path: string): boolean {
  return !isFixture(path) && !path.startsWith("proto/gen/") &&
    !/(?:^|\/)(?:deno\.lock|LICENSE|tidy_test\.ts|tidy\/banned\.ts)$/.test(path);
}

const CODE = (path: string): boolean => isProse(path) && !path.endsWith(".md");
const UNIT_TESTS = (path: string): boolean => isProse(path) && path.endsWith("_test.ts");
/** Where a program meets its environment. */
const ENTRY = /(?:^|\/)(?:main|config)\.ts$|^common\/program\.ts$|^ctl\/io\.ts$/;

const BANS: readonly Ban[] = [
  {
    pattern: /--allow-all\b|\bdeno (?:run|test|task|serve|x)\b[^\n]*\s-A\b|["']-A["']/,
    instead: "name a permission set of deno.json (-P=…): a program that may do anything proves " +
      "nothing about what it needs",
    // The end-to-end test of permissions looks for the very words.
    where: (path) => CODE(path) && path !== "tests/e2e/permissions_test.ts",
  },
  {
    pattern: /\bdeno (?:run|test|serve|x)\b[^\n]*\s(?:-A\b|--allow-all\b)/,
    instead: "show the reader a permission set (-P=…)",
    where: (path) => isProse(path) && path.endsWith(".md"),
  },
  {
    pattern: /\b(?:FIXME|TODO|XXX)\b/,
    instead: "do it now, or leave it out and say so in the docs",
    where: isProse,
  },
  {
    pattern: /\bissues? #?\d+\b/i,
    instead: "give the reason itself: a number says nothing to a reader without the tracker. " +
      "Another project's is written owner/name#123",
    where: isProse,
  },
  {
    pattern: /\b(?:registry\.npm[j]s|files\.pythonhost[e]d|pyp[i]\.org|jsr\.i[o]\b|deno\.lan[d]\b)/,
    instead: "name the package and let the client's own configuration say where it comes from",
    where: isProse,
  },
  {
    pattern: /deno-lint-ignore(?:-file)?[^\n]*\bheddle\//,
    instead: "change the design, or the rule: an arrow with exceptions is no arrow",
    where: (path) => isProse(path) && isWritten(path),
  },
  {
    pattern: /\bDeno\.serve\(/,
    instead: "use node:http(s) or node:http2: Deno.serve has no timeouts and ignores client " +
      "certificates",
    where: isProduct,
  },
  {
    pattern: /\bDeno\.kill\(/,
    instead: "go through the launcher: a scoped permission set refuses Deno.kill",
    where: isProduct,
  },
  {
    pattern: /\bDeno\.exit\(/,
    instead: "throw a HeddleError, or set Deno.exitCode, and let main.ts end the program",
    where: (path) => isProduct(path) && !ENTRY.test(path),
  },
  {
    pattern: /\bDeno\.env\b|\bprocess\.env\b/,
    instead: "read the environment in main.ts or config.ts and pass the value on",
    where: (path) => isProduct(path) && !ENTRY.test(path),
  },
  {
    pattern: /\bstructuredClone\(/,
    instead: "share structure: cloning a world of 1,000 nodes takes 60 ms",
    where: (path) => isProduct(path) && path.startsWith("control/"),
  },
  {
    pattern: /\bsetTimeout\(\s*(?:r|res|resolve|done|ok)\s*,|\bdelay\(\s*\d/,
    instead: "wait for the event itself, or pass a clock: a sleep is too long or too short",
    where: UNIT_TESTS,
  },
  {
    pattern: /\bDeno\.test\.only\(|\bonly:\s*true\b/,
    instead: "run one test with --filter: `only` silences all the others",
    where: UNIT_TESTS,
  },
];

/** One line for each banned thing that is written somewhere: path, line, what, what instead. */
export function bannedText(files: readonly SourceFile[]): readonly string[] {
  return files.flatMap(({ path, text }) => {
    const bans = BANS.filter((ban) => ban.where(path));
    if (!bans.some((ban) => ban.pattern.test(text))) return [];
    return text.split("\n").flatMap((line, index) =>
      bans.filter((ban) => ban.pattern.test(line)).map((ban) =>
        `${path}:${index + 1}: "${ban.pattern.exec(line)?.[0]}": ${ban.instead}`
      )
    );
  });
}

/** Files that name the folder they were written in: nobody else has it. */
export function ownPaths(
  files: readonly SourceFile[],
  folders: readonly string[],
): readonly string[] {
  return files.filter(({ path }) => isProse(path)).flatMap(({ path, text }) =>
    folders.filter((folder) => new RegExp(`${RegExp.escape(folder)}(?![\\w-])`).test(text))
      .map((folder) => `${path}: names ${folder}, which is a folder of one machine only`)
  );
}
