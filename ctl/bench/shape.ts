/** What kind of requests are sent: lengths, and how much of a prompt is shared with others. */
import { logUniform, type Random, randomOf } from "./random.ts";

export interface Message {
  readonly role: string;
  readonly content: string;
}

/** One request to send. */
export interface BenchRequest {
  readonly messages: readonly Message[];
  readonly maxTokens: number;
}

/** Requests by number; the same number and seed give the same request. */
export interface Shape {
  readonly name: string;
  request(seed: number, index: number): BenchRequest;
}

/** Lengths in words, which are about as many tokens in the vocabularies of today. */
interface Lengths {
  readonly prompt: readonly [number, number];
  readonly output: readonly [number, number];
  /** Words that all requests of one group begin with. */
  readonly shared: number;
  /** How many groups there are. */
  readonly groups: number;
}

const LENGTHS = {
  /** A system prompt that many share, a question, an answer of some paragraphs. */
  chat: { prompt: [50, 800], output: [50, 400], shared: 300, groups: 4 },
  /** Long documents, asked about several times; short answers. */
  rag: { prompt: [100, 400], output: [50, 200], shared: 3_000, groups: 24 },
  /** Nothing in common, long answers. */
  batch: { prompt: [500, 2_000], output: [200, 800], shared: 0, groups: 1 },
} as const satisfies Readonly<Record<string, Lengths>>;

export const SHAPES: readonly string[] = Object.keys(LENGTHS);

/** Undefined when no shape has that name. */
export function namedShape(name: string): Shape | undefined {
  const lengths = Object.entries(LENGTHS).find(([each]) => each === name)?.[1];
  return lengths && { name, request: (seed, index) => drawn(lengths, seed, index) };
}

function drawn(lengths: Lengths, seed: number, index: number): BenchRequest {
  const random = randomOf("request", seed, index);
  const group = Math.floor(random() * lengths.groups);
  const question = { role: "user", content: words(random, logUniform(random, lengths.prompt)) };
  const shared = lengths.shared === 0
    ? []
    : [{ role: "system", content: sharedWords(seed, group, lengths.shared) }];
  return { messages: [...shared, question], maxTokens: logUniform(random, lengths.output) };
}

/** The beginning that every request of a group has. */
export function sharedWords(seed: number, group: number | string, count: number): string {
  return words(randomOf("shared", seed, group), count);
}

/** English words that are one token each in common vocabularies. */
const VOCABULARY =
  "the of and to in is that for it as was with be by on not he his but at are this have from or had an they which one you were all her she there would their we him been has when who will no more if out so up said what its about than into them can only other time new some could these two may first then do any like my now over such our man me even most made after also did many off before must well back through years where much your way down should because long each just state those people too mr how little good world make very year still see own work men day get here old life both between being under three never know same last another while us might great go come since against right came take used himself few house use place during high without again home around small however found thought went say part once general upon school every"
    .split(" ");

export function words(random: Random, count: number): string {
  return Array.from(
    { length: count },
    () => VOCABULARY[Math.floor(random() * VOCABULARY.length)] ?? "the",
  ).join(" ");
}
