/** One run: load, kills, and the books side by side. */
import type { UsageRecord } from "@heddle/proto/gen/tenancy";
import { recordsOf } from "./books.ts";
import { sendAll, type Sent } from "./load.ts";
import { type Killable, Site, type Totals } from "./site.ts";

/** What may be lost before a kill; docs/router.md promises less. */
const LOSS_MS = 1_000;

/** Fast engines, of which some answers break off and some requests are refused once. */
const SIM_ARGS = [
  "--sim-overhead-ms",
  "1",
  "--sim-prefill-tokens-per-s",
  "400000",
  "--sim-decode-tokens-per-s",
  "40",
  "--sim-decode-tokens-per-s-total",
  "20000",
  "--sim-fault",
  "cut_stream:after_tokens=3,every=29",
  "--sim-fault",
  "http_error:status=503,every=23",
];

export interface Event {
  /** After so many requests. */
  readonly after: number;
  readonly what: Killable;
  readonly how: "kill" | "stop";
}

export interface Account {
  readonly sent: number;
  readonly engines: Totals;
  /** Of all tries, those that did not serve included. */
  readonly ledger: Totals;
  readonly records: number;
  readonly estimated: number;
  /** Records by how their requests ended. */
  readonly outcomes: Readonly<Record<string, number>>;
  /** Sums as `usage` would show them. */
  readonly billed: Totals & { readonly requests: number; readonly costMicro: number };
  /** Requests that have two records or more. */
  readonly twice: readonly string[];
  /** Answered in full and without a record, though it ended long enough before any kill. */
  readonly missing: readonly string[];
  /** Answered in full and without a record, for a kill within a second. */
  readonly lost: number;
  /** Tries that failed without a word of what they used: a whole answer that broke off, a refusal. */
  readonly unseen: number;
  /** In flight when the router was killed: their engines' work has no record. */
  readonly cutOff: number;
}

export async function account(
  requests: number,
  { events, seed }: { events: readonly Event[]; seed: number },
): Promise<Account> {
  await using site = await Site.start(SIM_ARGS);
  const { secret } = await site.key();
  await site.run("router");
  const kills: number[] = [];
  let acting: Promise<void> = Promise.resolve();
  let routerBack: Promise<void> = acting;
  const todo = [...events].sort((a, b) => a.after - b.after);
  const options = {
    url: site.url,
    secret,
    clients: 12,
    requests,
    random: randomOf(seed),
    ready: () => routerBack,
  };
  const sent = await sendAll(options, (count) => {
    while (todo[0] !== undefined && todo[0].after <= count) {
      const event = todo.shift();
      if (event === undefined) return;
      acting = acting.then(() => act(site, event, kills));
      // Without control the router serves on, and so does the load.
      if (event.what === "router") routerBack = acting;
    }
  });
  await acting;
  await site.settled();
  const engines = await site.engines();
  // What it has not handed in yet, of clients that have just left, it hands in as it stops.
  await site.stop("router");
  const billed = await site.ledger();
  await site.stop("control");
  return compared({ sent, kills, billed, engines, records: recordsOf(site.controlState) });
}

async function act(site: Site, { what, how }: Event, kills: number[]): Promise<void> {
  if (how === "kill") {
    if (what === "router") kills.push(performance.now());
    await site.kill(what);
  } else await site.stop(what);
  await site.run(what);
}

function compared(
  { sent, kills, billed, engines, records }: {
    readonly sent: readonly Sent[];
    readonly kills: readonly number[];
    readonly billed: Account["billed"];
    readonly engines: Totals;
    readonly records: readonly UsageRecord[];
  },
): Account {
  const counts = new Map<string, number>();
  for (const { requestId } of records) counts.set(requestId, (counts.get(requestId) ?? 0) + 1);
  const without = sent.filter(({ id, whole }) => whole && !counts.has(id));
  const excused = ({ endedAt }: Sent) =>
    kills.some((at) => endedAt > at - LOSS_MS && endedAt < at + LOSS_MS);
  const cutOff = sent.filter(({ startedAt, endedAt }) =>
    kills.some((at) => startedAt < at && endedAt > at)
  );
  return {
    sent: sent.length,
    engines,
    ledger: totalOf(records),
    records: records.length,
    estimated: records.filter(({ estimated }) => estimated).length,
    outcomes: outcomesOf(records),
    billed,
    twice: [...counts].filter(([, count]) => count > 1).map(([id]) => id),
    missing: without.filter((each) => !excused(each)).map(({ id }) => id),
    lost: without.filter(excused).length,
    unseen: records.flatMap(({ attempts }) => attempts)
      .filter(({ usage }) => usage === undefined).length,
    cutOff: cutOff.length,
  };
}

function outcomesOf(records: readonly UsageRecord[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { outcome } of records) counts[outcome] = (counts[outcome] ?? 0) + 1;
  return counts;
}

function totalOf(records: readonly UsageRecord[]): Totals {
  const total = { prompt: 0, completion: 0 };
  for (const { usage } of records.flatMap(({ attempts }) => attempts)) {
    total.prompt += Number(usage?.promptTokens ?? 0n);
    total.completion += Number(usage?.completionTokens ?? 0n);
  }
  return total;
}

/** The same numbers for the same seed. */
function randomOf(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** A prompt of sixty words and the template around it, and the longest answer. */
const PROMPT_TOKENS_MAX = 110;
const ANSWER_TOKENS_MAX = 24;

/**
 * What the engines did beyond the ledger must be explained by kills, by tries of which nothing was
 * seen, and by what engines generated for clients that had left; and the ledger must hold nothing
 * that no engine did, but for prompts that were estimated. Returns what is not explained.
 */
export function unexplained(it: Account): readonly string[] {
  const requests = it.lost + it.cutOff + it.unseen;
  const prompt = it.engines.prompt - it.ledger.prompt;
  const completion = it.engines.completion - it.ledger.completion;
  const slack = it.estimated * PROMPT_TOKENS_MAX / 4;
  const most = (requests + it.estimated) * ANSWER_TOKENS_MAX;
  return [
    ...(prompt > requests * PROMPT_TOKENS_MAX + slack
      ? [`${prompt} prompt tokens are missing`]
      : []),
    ...(prompt < -slack ? [`${-prompt} prompt tokens too many`] : []),
    ...(completion > most ? [`${completion} completion tokens are missing`] : []),
    ...(completion < 0 ? [`${-completion} completion tokens too many`] : []),
    ...it.twice.map((id) => `${id} is there twice`),
    ...it.missing.map((id) => `${id} is missing`),
  ];
}

/** The two books in a few lines. */
export function told(it: Account): string {
  const line = (name: string, { prompt, completion }: Totals) =>
    `  ${name.padEnd(8)} ${String(prompt).padStart(9)} prompt ${
      String(completion).padStart(9)
    } completion tokens`;
  return [
    `${it.sent} requests, ${it.records} records (${it.estimated} estimated), ` +
    `${it.twice.length} twice, ${it.missing.length} missing, ` +
    `${it.lost} lost and ${it.cutOff} cut off by kills, ${it.unseen} tries unseen`,
    `  ${Object.entries(it.outcomes).map(([name, count]) => `${count} ${name}`).join(", ")}`,
    line("engines", it.engines),
    line("ledger", it.ledger),
    line("billed", it.billed),
  ].join("\n");
}
