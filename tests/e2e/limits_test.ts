/** Limits that three routers share, with real processes: what passes in all, and what is refused. */
import { equal, ok } from "node:assert/strict";
import { eventually } from "../router_only/processes.ts";
import {
  type Answer,
  fullestMinute,
  LimitedSite,
  refusedEarly,
  steadyLoad,
} from "./limited_site.ts";

/** A little over a minute, so that a whole one is seen. */
const SECONDS = 64;
const REQUESTS_PER_MINUTE = 120;
const TOKENS_PER_MINUTE = 6_000;
const CONCURRENT = 10;
/** Who is refused before so much of the limit has passed is refused early. */
const EARLY_BELOW = 0.8;
/**
 * A request waits a tenth of a second for control, and on a machine that runs much else control is
 * slower: so many of a hundred may be early here. That nobody is refused while others hold what they
 * do not use is tried with a clock of its own beside the pool of shares.
 */
const EARLY_MAX = 0.1;
/** Of a limit that is asked for twice over, what passes in a minute at least: no share lies idle. */
const USED_MIN = 0.5;

const SLOW_ENGINE = ["--sim-decode-tokens-per-s", "5", "--max-num-seqs", "256"];

function tell(text: string): void {
  Deno.stdout.writeSync(new TextEncoder().encode(`\n${text}\n`));
}

/** First mostly at the first router, then mostly at the last. */
function skewed(second: number): readonly number[] {
  return second < SECONDS / 2 ? [80, 15, 5] : [5, 15, 80];
}

function judge(limit: number, { answers, weigh, limited }: {
  readonly answers: readonly Answer[];
  readonly weigh: (answer: Answer) => number;
  readonly limited: string;
}): void {
  const refused = answers.filter(({ status }) => status === 429);
  const other = answers.filter(({ status }) => status !== 200 && status !== 429);
  const fullest = fullestMinute(answers, weigh);
  const early = refusedEarly(answers, EARLY_BELOW * limit, weigh);
  tell(
    `${limited}: ${answers.length} asked, ${refused.length} refused, ${early.length} of them early, ` +
      `${other.length} failed; at most ${fullest} of ${limit} in a minute, ${
        (fullest / limit).toFixed(3)
      } of the limit`,
  );
  // Control's first word may be late for any of a key's limits.
  const byIt = refused.filter((answer) => answer.limit === limited).length;
  ok(byIt > 0.5 * refused.length, `${byIt} of ${refused.length} were refused by ${limited}`);
  ok(fullest <= 1.1 * limit, `${fullest} passed in a minute`);
  ok(fullest >= USED_MIN * limit, `only ${fullest} passed in a minute`);
  ok(early.length <= EARLY_MAX * answers.length, `${early.length} were refused early`);
  ok(other.length <= 0.1 * answers.length, `${other.length} failed`);
}

Deno.test("three routers keep to the limits of one key under skewed load, and let no share lie idle", async () => {
  await using site = await LimitedSite.start(3);
  const limits = (requests: number, tokens: number) => ({
    requestsPerMinute: BigInt(requests),
    tokensPerMinute: BigInt(tokens),
    concurrentRequests: 100,
  });
  const few = await site.key("few requests", limits(REQUESTS_PER_MINUTE, 1_000_000));
  const short = await site.key("few tokens", limits(1_000_000, TOKENS_PER_MINUTE));
  const load = { seconds: SECONDS, shares: skewed };
  const [byRequest, byToken] = await Promise.all([
    steadyLoad(site, { ...load, secret: few, maxTokens: 2, perSecond: 4 }),
    steadyLoad(site, { ...load, secret: short, maxTokens: 40, perSecond: 4 }),
  ]);
  judge(REQUESTS_PER_MINUTE, {
    answers: byRequest,
    weigh: () => 1,
    limited: "requests_per_minute",
  });
  judge(TOKENS_PER_MINUTE, {
    answers: byToken,
    weigh: ({ tokens }) => tokens,
    limited: "tokens_per_minute",
  });
});

for (const routers of [1, 2, 3]) {
  Deno.test(`${routers} routers: of 50 parallel requests on a key worth 10 at most 10 are let in`, async () => {
    await using site = await LimitedSite.start(routers, SLOW_ENGINE);
    const secret = await site.key("ten", {
      requestsPerMinute: 100_000n,
      tokensPerMinute: 100_000_000n,
      concurrentRequests: CONCURRENT,
    });
    const held: { end(): Promise<void> }[] = [];
    const storm = async (routerOf: (turn: number) => number) => {
      const answers = await Promise.all(
        Array.from(
          { length: 50 },
          (_, turn) => site.hold({ router: routerOf(turn), secret, maxTokens: 2_000 }),
        ),
      );
      held.push(...answers);
      return answers.filter(({ admitted }) => admitted).length;
    };
    const letGo = async () => await Promise.all(held.splice(0).map(({ end }) => end()));
    // Four fifths at the first, the rest spread.
    const first = await storm((turn) => turn % 5 < 4 ? 0 : turn % routers);
    const beside = await storm((turn) => turn % routers);
    await letGo();
    // Now everybody is at the last router, and every place that another held must come to it.
    const last = await eventually("all ten places are at one router", async () => {
      const admitted = await storm(() => routers - 1);
      await letGo();
      return admitted >= CONCURRENT ? admitted : undefined;
    }, 45_000);
    tell(`${routers} routers: ${first} of 50 let in, ${beside} of 50 more, then ${last} at one`);
    ok(first <= CONCURRENT && first > 0, `${first} were let in`);
    ok(first + beside <= CONCURRENT, `${first + beside} were in at once`);
    equal(last, CONCURRENT);
  });
}
