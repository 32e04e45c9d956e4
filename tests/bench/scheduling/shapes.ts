/** Shapes of traffic: what arrives when, decided beforehand, so that every policy gets the same. */
import { seeded } from "../../scheduling/traffic.ts";

export interface Turn {
  readonly role: "system" | "user" | "assistant";
  readonly content: string;
}

export interface Arrival {
  /** Milliseconds from the start. */
  readonly at: number;
  readonly messages: readonly Turn[];
  readonly answerTokens: number;
}

export interface Shape {
  readonly name: string;
  readonly says: string;
  /** What happens to one of the engines. */
  readonly trouble: "none" | "slow" | "lost";
  readonly arrivals: (run: ShapeRun) => readonly Arrival[];
}

export interface ShapeRun {
  readonly seconds: number;
  readonly seed: number;
  /** Begins every prompt, so that no cache has anything of an earlier run. */
  readonly salt: string;
}

const WORDS =
  "time year people way day man thing woman life child world school state family student"
    .split(" ");

function words(count: number, random: () => number): string {
  return Array.from({ length: count }, () => WORDS[Math.floor(random() * WORDS.length)] ?? "time")
    .join(" ");
}

function poisson(perSecond: number, seconds: number, random: () => number): readonly number[] {
  const found: number[] = [];
  for (let at = 0;;) {
    at += -Math.log(1 - random()) / perSecond * 1_000;
    if (at >= seconds * 1_000) return found;
    found.push(at);
  }
}

/** Conversations of six turns about seven systems' prompts; a turn every three seconds or so. */
function conversations({ seconds, seed, salt }: ShapeRun): readonly Arrival[] {
  const random = seeded(seed);
  const systems = Array.from({ length: 7 }, () => `${salt} ${words(400, random)}`);
  const found: Arrival[] = [];
  for (const began of poisson(3, seconds, random)) {
    const messages: Turn[] = [{
      role: "system",
      content: systems[Math.floor(random() * systems.length)] ?? salt,
    }];
    let at = began;
    for (let turn = 0; turn < 6; turn++) {
      messages.push({ role: "user", content: words(60 + Math.floor(random() * 120), random) });
      if (at < seconds * 1_000) found.push({ at, messages: [...messages], answerTokens: 16 });
      messages.push({ role: "assistant", content: words(40, random) });
      at += 2_000 + random() * 2_000;
    }
  }
  return found.sort((a, b) => a.at - b.at);
}

function bursts({ seconds, seed, salt }: ShapeRun): readonly Arrival[] {
  const random = seeded(seed);
  const at = poisson(3, seconds, random).slice();
  for (let burst = 1_000; burst < seconds * 1_000; burst += 4_000) {
    for (let index = 0; index < 40; index++) at.push(burst + random() * 50);
  }
  return at.sort((a, b) => a - b).map((when) => ({
    at: when,
    messages: [{ role: "user", content: `${salt} ${words(250, random)}` }],
    answerTokens: 24,
  }));
}

function mixed({ seconds, seed, salt }: ShapeRun): readonly Arrival[] {
  const random = seeded(seed);
  return poisson(14, seconds, random).map((at) => {
    const long = random() < 0.15;
    return {
      at,
      messages: [{ role: "user", content: `${salt} ${words(long ? 2_000 : 60, random)}` }],
      answerTokens: long ? 16 : 24,
    };
  });
}

export const SHAPES: readonly Shape[] = [
  {
    name: "conversations",
    says: "six turns each over seven systems' prompts, 3 new ones a second",
    trouble: "none",
    arrivals: conversations,
  },
  {
    name: "bursts",
    says: "40 prompts of 250 words at once every 4 s, 3 a second in between",
    trouble: "none",
    arrivals: bursts,
  },
  {
    name: "mixed",
    says: "14 a second, 15 in 100 of them 2,000 words long, the others 60",
    trouble: "none",
    arrivals: mixed,
  },
  {
    name: "slow replica",
    says: "the mix, one of the eight at a quarter of the speed",
    trouble: "slow",
    arrivals: mixed,
  },
  {
    name: "lost replica",
    says: "the conversations, one of the eight killed in the middle",
    trouble: "lost",
    arrivals: conversations,
  },
];
