/**
 * Pushes what control knows to open consoles. Each collection is looked at once a second for all of
 * them together, and only while somebody follows it; a console gets all of it first, and then what
 * changed. One that reads too slowly is left out until it has caught up and then gets all again, so
 * nothing queues for it; one that never does is let go.
 */
import type { Frame, Topic } from "./wire.ts";

export const TICK_MS = 1_000;

/** Open consoles at a time. Each costs a connection and, at worst, the bound below. */
const FOLLOWERS_MAX = 64;

/** Bytes that may wait for one console before it is left out. */
const WAITING_BYTES_MAX = 1_048_576;

/** How long one may be left out before it is let go, in ms. */
const BEHIND_MS_MAX = 30_000;

/** So that proxies and peers see that the connection lives, in ms. */
const QUIET_MS_MAX = 10_000;

/** Where one console's frames go. */
export interface Sink {
  /** Text of an event stream. */
  write(text: string): void;
  /** Bytes that have not left yet. */
  waitingBytes(): number;
  /** Ends it; nothing is written afterwards. */
  end(): void;
}

/** What there is of a collection, by key. */
export type Look = (topic: Topic) => ReadonlyMap<string, unknown>;

interface Follower {
  readonly sink: Sink;
  readonly topics: ReadonlySet<Topic>;
  /** It has had all of each of its collections, and every change since. */
  current: boolean;
  behindSince: number | undefined;
  wroteAt: number;
}

export class Live {
  readonly #look: Look;
  readonly #now: () => number;
  readonly #followers = new Set<Follower>();
  /** As of the last tick, as JSON; only of collections that somebody follows. */
  readonly #known = new Map<Topic, ReadonlyMap<string, string>>();
  #timer: ReturnType<typeof setInterval> | undefined;
  #closed = false;

  constructor(look: Look, now: () => number) {
    this.#look = look;
    this.#now = now;
  }

  get size(): number {
    return this.#followers.size;
  }

  /** Begins to push at once; the result ends it. Undefined when there are too many, or it is closed. */
  follow(topics: ReadonlySet<Topic>, sink: Sink): (() => void) | undefined {
    if (this.#closed || this.#followers.size >= FOLLOWERS_MAX) return undefined;
    const follower: Follower = {
      sink,
      topics,
      current: false,
      behindSince: undefined,
      wroteAt: this.#now(),
    };
    this.#followers.add(follower);
    this.#timer ??= setInterval(() => this.tick(), TICK_MS);
    this.#bringUp(follower);
    return () => this.#leave(follower);
  }

  /** Looks, and pushes what changed. */
  tick(): void {
    const now = this.#now();
    const changes = new Map<Topic, string>();
    for (const topic of this.#followed()) {
      const change = this.#change(topic, now);
      if (change !== undefined) changes.set(topic, change);
    }
    for (const topic of this.#known.keys()) {
      if (!this.#followed().has(topic)) this.#known.delete(topic);
    }
    for (const follower of [...this.#followers]) this.#push(follower, changes, now);
  }

  /** Ends every console's stream for good; each tries again by itself. */
  close(): void {
    this.#closed = true;
    for (const follower of [...this.#followers]) {
      this.#leave(follower);
      follower.sink.end();
    }
  }

  #push(follower: Follower, changes: ReadonlyMap<Topic, string>, now: number): void {
    const { sink, topics } = follower;
    if (!follower.current) {
      if (sink.waitingBytes() === 0) return this.#bringUp(follower);
      follower.behindSince ??= now;
      if (now - follower.behindSince < BEHIND_MS_MAX) return;
      this.#leave(follower);
      return sink.end();
    }
    if (sink.waitingBytes() > WAITING_BYTES_MAX) {
      follower.current = false;
      return;
    }
    const text = [...changes].filter(([topic]) => topics.has(topic)).map(([, each]) => each);
    if (text.length > 0) this.#write(follower, text.join(""), now);
    else if (now - follower.wroteAt >= QUIET_MS_MAX) this.#write(follower, ":\n\n", now);
  }

  #bringUp(follower: Follower): void {
    const now = this.#now();
    const frames = [...follower.topics].map((topic) => {
      const known = this.#known.get(topic) ?? this.#fresh(topic);
      this.#known.set(topic, known);
      return frameText({ topic, whole: true, now }, known, []);
    });
    follower.current = true;
    follower.behindSince = undefined;
    this.#write(follower, frames.join(""), now);
  }

  #write(follower: Follower, text: string, now: number): void {
    follower.wroteAt = now;
    follower.sink.write(text);
  }

  #fresh(topic: Topic): ReadonlyMap<string, string> {
    return new Map([...this.#look(topic)].map(([key, item]) => [key, JSON.stringify(item)]));
  }

  #change(topic: Topic, now: number): string | undefined {
    const before = this.#known.get(topic);
    const after = this.#fresh(topic);
    this.#known.set(topic, after);
    if (before === undefined) return undefined;
    const set = new Map([...after].filter(([key, text]) => before.get(key) !== text));
    const gone = [...before.keys()].filter((key) => !after.has(key));
    if (set.size === 0 && gone.length === 0) return undefined;
    return frameText({ topic, whole: false, now }, set, gone);
  }

  #followed(): ReadonlySet<Topic> {
    return new Set([...this.#followers].flatMap(({ topics }) => [...topics]));
  }

  #leave(follower: Follower): void {
    this.#followers.delete(follower);
    if (this.#followers.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#known.clear();
  }
}

// The items are JSON already, and are put together as text: none is serialised twice.
function frameText(
  head: Omit<Frame, "set" | "gone">,
  set: ReadonlyMap<string, string>,
  gone: readonly string[],
): string {
  const items = [...set].map(([key, text]) => `${JSON.stringify(key)}:${text}`).join(",");
  const rest = `"set":{${items}},"gone":${JSON.stringify(gone)}`;
  return `data: ${JSON.stringify(head).slice(0, -1)},${rest}}\n\n`;
}
