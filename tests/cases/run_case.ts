/** Runs one case: a router and two replicas of its own for each run, so that nothing carries over. */
import type { Case, CasePart, CaseRequest, Expect, Upstream } from "./case_schema.ts";
import { failures } from "./expect/checks.ts";
import { defaultAnswer } from "./wire/default_answer.ts";
import { type Script, scriptOf } from "./wire/engine_script.ts";
import { NOT_YET } from "./not_yet.ts";
import { type ClientAnswer, send } from "./wire/raw_client.ts";
import { bodyOf, plainBody, requestBytes } from "./wire/request_bytes.ts";
import { stepOfWords } from "./wire/step_words.ts";
import { type RouterUnderTest, startRouterUnderTest } from "./case_router.ts";
import { type Engines, startEngines } from "./wire/scripted_engine.ts";
import { at, CaseFault, parsed, type Seen, textOf } from "./expect/seen.ts";

export type CaseResult =
  | { readonly kind: "pass" }
  | { readonly kind: "fail"; readonly problems: readonly string[] }
  | { readonly kind: "not_yet"; readonly why: string };

/** No answer takes longer, with a heartbeat and an engine that takes its time. */
const ANSWER_LIMIT_MS = 60_000;
/** How long books and engines may take to be in order after the client's end. */
const SETTLE_MS = 2_000;

const REPLICAS = ["a", "b"];
/** What the fixtures' engines serve. A case's own names are added, unless it wants a 404. */
const MODELS = ["fx-chat", "fx-embed", "fx-rerank", "fx-asr", "fx-free", "fx-paid"];

/** One request (or several at once) on a router of its own, or the next one on the same. */
interface Run {
  readonly request: CaseRequest;
  readonly transfer: "content-length" | "chunked";
  readonly parallel: number;
  readonly part: CasePart;
}

/** Runs `line`, whose files are in `folder`. */
export async function runCase(line: Case, folder: string): Promise<CaseResult> {
  const missing = NOT_YET.get(line.id);
  if (missing !== undefined) return { kind: "not_yet", why: missing };
  const problems = await problemsOf(line, folder);
  return problems.length === 0 ? { kind: "pass" } : { kind: "fail", problems };
}

/** What of a case does not hold, also of one that is known not to pass yet. */
export async function problemsOf(line: Case, folder: string): Promise<string[]> {
  const problems: string[] = [];
  try {
    for (const [label, runs] of runsOf(line)) {
      const found = await runTogether(line, runs, folder);
      problems.push(...found.map((problem) => label + problem));
    }
  } catch (error) {
    if (!(error instanceof CaseFault || error instanceof Deno.errors.NotFound)) throw error;
    problems.push(`the case cannot be run: ${error.message}`);
  }
  return problems;
}

/** What is run, each with a router of its own. */
function runsOf(line: Case): [label: string, runs: Run[]][] {
  if (line.steps !== undefined) {
    const runs = line.steps.map((step) =>
      runOf(line, typeof step === "string" ? stepOfWords(step) : step)
    );
    return [["", runs]];
  }
  if (line.sequence !== undefined) {
    const { parallel, request } = line.sequence;
    return [["", [{ ...runOf(line, { ...line, request }), parallel }]]];
  }
  if (line.variants !== undefined) {
    return line.variants.flatMap((variant, index) =>
      eachTransfer(line, variant, `variant ${index + 1}: `)
    );
  }
  return eachTransfer(line, line, "");
}

function eachTransfer(line: Case, part: CasePart, label: string): [string, Run[]][] {
  const run = runOf(line, part);
  const { transfer } = run.request;
  return transfer.map((way) => [
    transfer.length > 1 ? `${label}${way}: ` : label,
    [{ ...run, transfer: way }],
  ]);
}

function runOf(line: Case, part: CasePart): Run {
  const request = part.request ?? line.request;
  if (request === undefined) throw new CaseFault("there is no request");
  return { request, transfer: "content-length", parallel: 1, part };
}

async function runTogether(line: Case, runs: readonly Run[], folder: string): Promise<string[]> {
  const read = (file: string): Uint8Array => Deno.readFileSync(`${folder}/${file}`);
  const scripts: Script[] = [];
  let current: readonly Script[] = [];
  let callsBefore = 0;
  const reserved: Promise<number>[] = [];
  let reservedNow = () => Promise.resolve(0);
  await using engines = await startEngines(REPLICAS, (_call, index) => {
    reserved.push(reservedNow());
    const script = current[Math.min(index - callsBefore, current.length - 1)];
    if (script === undefined) throw new Error("no script");
    scripts.push(script);
    return script;
  });
  await using router = await startRouterUnderTest({
    replicas: engines.replicas,
    models: modelsOf(line, runs, read),
    declared: line.setup.models,
    key: line.setup.key,
    hangs: runs.some(({ part }) =>
      part.upstream?.some(({ end, bytes }) => end === "hang" && bytes === 0)
    ),
  });
  reservedNow = router.reservedTokens;
  const problems: string[] = [];
  const answers: ClientAnswer[] = [];
  let last: Seen | undefined;
  for (const run of runs) {
    current = scriptsOf(line, run, read);
    callsBefore = engines.calls.length;
    last = await play(run, { engines, router, scripts, answers, reserved, read });
    if (runs.length > 1) problems.push(...failures(run.part.expect ?? {}, last));
  }
  if (last !== undefined) problems.push(...failures(overall(line, runs), last));
  return problems;
}

/** What must hold at the very end: the case's own words, and a variant's. */
function overall(line: Case, runs: readonly Run[]): Expect {
  const [only] = runs;
  const own = runs.length === 1 && only !== undefined ? only.part.expect : undefined;
  return { ...line.expect, ...own };
}

function scriptsOf(
  line: Case,
  { part, request }: Run,
  read: (file: string) => Uint8Array,
): Script[] {
  const upstream: readonly Upstream[] = part.upstream ?? line.upstream ??
    [defaultAnswer(request.path)];
  return upstream.map((answer) => scriptOf(answer, read));
}

interface Stage {
  readonly engines: Engines;
  readonly router: RouterUnderTest;
  readonly scripts: readonly Script[];
  /** Of all requests so far. */
  readonly answers: ClientAnswer[];
  /** Tokens that were reserved at each call of an engine. */
  readonly reserved: readonly Promise<number>[];
  readonly read: (file: string) => Uint8Array;
}

async function play(run: Run, stage: Stage): Promise<Seen> {
  const { engines, router, scripts, answers, reserved, read } = stage;
  const { request, part, parallel } = run;
  const body = bodyOf(request, read);
  const bytes = requestBytes(request, body, { transfer: run.transfer, keyOf: router.keyOf });
  const memory = watchMemory();
  const recordsBefore = router.records.length;
  answers.push(
    ...await Promise.all(Array.from({ length: parallel }, () =>
      send({
        port: router.port,
        bytes,
        client: part.client ?? {},
        limitMs: ANSWER_LIMIT_MS,
      }))),
  );
  await within(SETTLE_MS, engines.settled());
  // A request that reached an engine leaves a record; others may be refused before there is one.
  const due = engines.calls.length === 0 ? recordsBefore : recordsBefore + parallel;
  await within(SETTLE_MS, recordsUpTo(router, due));
  return {
    request,
    requestBody: plainBody(request, body),
    answers,
    calls: engines.calls,
    scripts,
    records: router.records,
    failedTries: await router.failedTries(),
    inFlight: await router.inFlight(),
    reserved: await Promise.all(reserved),
    reservedAfter: await router.reservedTokens(),
    memoryGrowthMib: memory.stop(),
    read,
  };
}

async function recordsUpTo(router: RouterUnderTest, count: number): Promise<void> {
  while (router.records.length < count) await router.recorded();
}

/** Waits for `promise`, but no longer than `ms`: what is late then shows as what it lacks. */
async function within(ms: number, promise: Promise<void>): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<void>((resolve) => timer = setTimeout(resolve, ms));
  await Promise.race([promise, late]);
  clearTimeout(timer);
}

function watchMemory(): { stop(): number } {
  const before = Deno.memoryUsage().rss;
  let peak = before;
  const look = (): number => peak = Math.max(peak, Deno.memoryUsage().rss);
  const timer = setInterval(look, 5);
  return {
    stop() {
      clearInterval(timer);
      return (look() - before) / 2 ** 20;
    },
  };
}

function modelsOf(
  line: Case,
  runs: readonly Run[],
  read: (file: string) => Uint8Array,
): string[] {
  const names = new Set([...MODELS, ...Object.keys(line.setup.models)]);
  const aliases = new Set(Object.values(line.setup.models).flatMap((model) => model.aliases ?? []));
  for (const { fallbacks } of Object.values(line.setup.models)) {
    for (const name of fallbacks ?? []) names.add(name);
  }
  for (const { request, part } of runs) {
    const expect = { ...line.expect, ...part.expect };
    const wants404 = JSON.stringify(expect["status"] ?? expect["client_status"] ?? "").includes(
      "404",
    );
    if (request.body_file === undefined || wants404) continue;
    const body = textOf(plainBody(request, read(request.body_file)));
    const model = at(parsed(body), "model") ??
      /name="model"\r\n(?:[^\r\n]+\r\n)*\r\n([^\r\n]*)/.exec(body)?.[1];
    if (typeof model === "string" && model !== "" && !aliases.has(model)) names.add(model);
  }
  return [...names];
}
