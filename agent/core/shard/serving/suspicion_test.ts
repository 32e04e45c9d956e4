import { equal, match, ok } from "node:assert/strict";
import type { ProbeOutcome } from "@heddle/common/engine/probe_outcome";
import type { EngineLoad, ShardEvent } from "../event.ts";
import { step, wakeAt } from "../lifecycle.ts";
import type { Shard } from "../shard.ts";
import { aShard } from "../shard_fake.ts";
import { statusOf } from "../status.ts";
import { PROBE_READY_MS, TOKEN_MS_MAX } from "../timing.ts";
import { worthSaving } from "../worth_saving.ts";

const NO_TOKEN: ProbeOutcome = { kind: "wrong", reason: "no_token", why: "no answer within 60 s" };
const MUTE: ProbeOutcome = { kind: "waiting", why: "/health: no answer within 5 s" };
const IDLE: EngineLoad = { running: 0, waiting: 0, progress: 7 };

interface Life {
  /** How long an answer takes, and what it is. */
  readonly answer: (now: number) => { readonly afterMs: number; readonly event: ShardEvent };
  readonly untilMs: number;
}

/** What is told of a shard over time, each line once; a probe takes the time that it takes. */
function told(from: Shard, { answer, untilMs }: Life): readonly string[] {
  let shard = from;
  let pending: { readonly at: number; readonly event: ShardEvent } | undefined;
  const lines: string[] = [];
  for (let now = 0, count = 0; now <= untilMs && count < 1_000; count++) {
    const wake = wakeAt(shard) ?? Infinity;
    now = Math.max(now, Math.min(wake, pending?.at ?? Infinity));
    const ripe = pending !== undefined && pending.at <= now ? pending.event : undefined;
    if (ripe !== undefined) pending = undefined;
    const next = step(shard, ripe ?? { type: "tick" }, now);
    equal(
      shard.state.kind === next.shard.state.kind && shard.state.kind === "ready" &&
        worthSaving(shard, next.shard),
      false,
      "a suspicion is no change that has to survive the agent",
    );
    shard = next.shard;
    if (next.effects[0]?.type === "probe" && pending === undefined) {
      const { afterMs, event } = answer(now);
      pending = { at: now + afterMs, event };
    }
    const { state, reason, message } = statusOf(shard, { address: "10.0.0.1", load: {} }, now);
    const line = `${Math.round(now / 1_000)} s: ${[state, reason, message].join(" ").trim()}`;
    const same = lines.at(-1)?.replace(/^\d+ s: /, "") === line.replace(/^\d+ s: /, "");
    if (now <= untilMs && !same) lines.push(line);
  }
  return lines;
}

Deno.test("an idle engine that gives no token is suspected while it is asked, and hangs when nothing else ran", () => {
  const lines = told(aShard("ready"), {
    untilMs: 200_000,
    answer: () => ({
      afterMs: TOKEN_MS_MAX,
      event: { type: "probed", outcome: NO_TOKEN, load: IDLE, after: IDLE },
    }),
  });
  // The shard of the fake is asked at 60 s for the first time.
  equal(
    lines.slice(0, 5).join("\n"),
    [
      "60 s: ready",
      "75 s: ready suspected not answering for 15s; it is called hung at 1m",
      "90 s: ready suspected not answering for 30s; it is called hung at 1m",
      "105 s: ready suspected not answering for 45s; it is called hung at 1m",
      "120 s: degraded no_token no answer within 60 s",
    ].join("\n"),
  );
});

Deno.test("the profile's own token_timeout is when it is called hung", () => {
  const liveness = { tokenTimeoutMs: 20_000, hungAfterMs: 0, failAfterMs: 0 };
  const spec = { liveness: { $typeName: "heddle.v1.Liveness" as const, ...liveness } };
  const [, suspected, hung] = told(aShard("ready", { spec }), {
    untilMs: 100_000,
    answer: () => ({
      afterMs: 20_000,
      event: { type: "probed", outcome: NO_TOKEN, load: IDLE, after: IDLE },
    }),
  });
  match(suspected ?? "", /^75 s: ready suspected .*called hung at 20s$/);
  match(hung ?? "", /^80 s: degraded no_token/);
});

Deno.test("an idle engine that answers is asked every half minute, and never suspected", () => {
  let asked = 0;
  const lines = told(aShard("ready"), {
    untilMs: 3_600_000,
    answer: () => {
      asked++;
      return { afterMs: 14_000, event: { type: "probed", outcome: { kind: "ready" }, load: IDLE } };
    },
  });
  equal(lines.join(), "60 s: ready");
  ok(asked >= 3_600_000 / (PROBE_READY_MS + 14_000) - 2);
});

Deno.test("work of others that came meanwhile excuses a token that did not come for as long as hung_after", () => {
  const others = { running: 3, waiting: 0, progress: 7 };
  const lines = told(aShard("ready"), {
    untilMs: 300_000,
    answer: (now) =>
      now === 60_000
        ? {
          afterMs: TOKEN_MS_MAX,
          event: { type: "probed", outcome: NO_TOKEN, load: IDLE, after: others },
        }
        : { afterMs: 0, event: { type: "probed", outcome: { kind: "ready" }, load: others } },
  });
  const at = (word: string) => Number(/^\d+/.exec(lines.find((l) => l.includes(word)) ?? "")?.[0]);
  ok(lines.some((line) => /has moved for 1m; it is called hung at 1m30s/.test(line)));
  const hung = at("degraded");
  ok(hung >= 150 && hung <= 165, `degraded after ${hung} s`);
});

Deno.test("work that was done meanwhile is no hang, however late the token", () => {
  const lines = told(aShard("ready"), {
    untilMs: 140_000,
    answer: (now) =>
      now === 60_000
        ? {
          afterMs: TOKEN_MS_MAX,
          event: { type: "probed", outcome: NO_TOKEN, load: IDLE, after: { ...IDLE, progress: 8 } },
        }
        : { afterMs: 1, event: { type: "probed", outcome: { kind: "ready" }, load: IDLE } },
  });
  equal(lines.at(-1), "130 s: ready");
  ok(!lines.some((line) => /s: degraded/.test(line)));
});

Deno.test("an engine that answers nothing at all is suspected after the first time, degraded after the second", () => {
  const lines = told(aShard("ready"), {
    untilMs: 100_000,
    answer: () => ({ afterMs: 5_000, event: { type: "probed", outcome: MUTE, load: {} } }),
  });
  equal(
    lines.slice(1, 3).join("\n"),
    [
      "65 s: ready suspected not answering for 5s; it is degraded when the next try fails too",
      "80 s: degraded not_answering /health: no answer within 5 s",
    ].join("\n"),
  );
});

Deno.test("requests that stand still are suspected before they are called hung, and well again when they go on", () => {
  const lines = told(aShard("ready"), {
    untilMs: 150_000,
    answer: (now) => ({
      afterMs: 0,
      event: {
        type: "probed",
        outcome: { kind: "ready" },
        load: { running: 2, waiting: 0, progress: now < 110_000 ? 5 : now },
      },
    }),
  });
  equal(
    lines.join("\n"),
    [
      "60 s: ready",
      "75 s: ready suspected requests run and none of its counters of work has moved for 15s; it is called hung at 1m30s",
      "90 s: ready suspected requests run and none of its counters of work has moved for 30s; it is called hung at 1m30s",
      "105 s: ready suspected requests run and none of its counters of work has moved for 45s; it is called hung at 1m30s",
      "120 s: ready",
    ].join("\n"),
  );
});
