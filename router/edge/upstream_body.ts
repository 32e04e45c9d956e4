/**
 * The body of an answer between the socket that brings it and the loop that reads it. Holds little:
 * above a mark the socket is paused, so that a slow client holds back the engine and not our memory.
 */
import type { UpstreamError } from "./upstream_error.ts";

/** Bytes held before the socket is paused; two full reads of a socket. */
const HELD_BYTES_MAX = 131_072;

/** What the body asks of its connection. */
export interface BodySource {
  pause(): void;
  resume(): void;
  /** The reader left before the end. */
  abandon(): void;
}

export class AnswerBody implements AsyncIterable<Uint8Array>, AsyncIterator<Uint8Array, undefined> {
  readonly #source: BodySource;
  #queue: Uint8Array[] = [];
  #held = 0;
  #paused = false;
  #ended = false;
  #error: UpstreamError | undefined;
  #reader: PromiseWithResolvers<IteratorResult<Uint8Array, undefined>> | undefined;
  #awaitedSince = 0;
  #iterated = false;

  constructor(source: BodySource) {
    this.#source = source;
  }

  /** Somebody waits for bytes: silence is the engine's. */
  get awaited(): boolean {
    return this.#reader !== undefined;
  }

  /** Since when, by the monotonic clock. */
  get awaitedSince(): number {
    return this.#awaitedSince;
  }

  add(bytes: Uint8Array): void {
    if (bytes.length === 0 || this.#ended || this.#error !== undefined) return;
    const reader = this.#reader;
    if (reader !== undefined) {
      this.#reader = undefined;
      return reader.resolve({ done: false, value: bytes });
    }
    this.#queue.push(bytes);
    this.#held += bytes.length;
    if (this.#held > HELD_BYTES_MAX && !this.#paused) {
      this.#paused = true;
      this.#source.pause();
    }
  }

  end(): void {
    if (this.#ended || this.#error !== undefined) return;
    this.#ended = true;
    this.#reader?.resolve({ done: true, value: undefined });
    this.#reader = undefined;
  }

  /** Bytes that came before the failure are still given out, except after an abort. */
  fail(error: UpstreamError): void {
    if (this.#ended || this.#error !== undefined) return;
    this.#error = error;
    if (error.reason === "aborted") this.#queue = [];
    this.#reader?.reject(error);
    this.#reader = undefined;
  }

  next(): Promise<IteratorResult<Uint8Array, undefined>> {
    const bytes = this.#queue.shift();
    if (bytes !== undefined) {
      this.#held -= bytes.length;
      // After the end the connection may carry another answer: not ours to resume.
      if (this.#paused && !this.#ended && this.#held <= HELD_BYTES_MAX / 2) {
        this.#paused = false;
        this.#source.resume();
      }
      return Promise.resolve({ done: false, value: bytes });
    }
    if (this.#error !== undefined) return Promise.reject(this.#error);
    if (this.#ended) return Promise.resolve({ done: true, value: undefined });
    this.#awaitedSince = performance.now();
    this.#reader = Promise.withResolvers();
    return this.#reader.promise;
  }

  return(): Promise<IteratorResult<Uint8Array, undefined>> {
    this.#queue = [];
    if (!this.#ended && this.#error === undefined) this.#source.abandon();
    return Promise.resolve({ done: true, value: undefined });
  }

  [Symbol.asyncIterator](): AsyncIterator<Uint8Array, undefined> {
    if (this.#iterated) throw new Error("Cannot read the body: it is being read already");
    this.#iterated = true;
    return this;
  }
}
