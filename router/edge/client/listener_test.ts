import { equal, match, ok } from "node:assert/strict";
import type { ServerResponse } from "node:http";
import net from "node:net";
import { startListener } from "./listener.ts";

const REQUEST = "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n";
const LOOPBACK = { kind: "address", address: { host: "127.0.0.1", port: 0 } } as const;
const GRACE_MS = 20_000;

/** A listener that leaves answers to the test, and a connection to it. */
async function open() {
  const asked: PromiseWithResolvers<ServerResponse>[] = [0, 1].map(() => Promise.withResolvers());
  let count = 0;
  const listener = await startListener({ on: LOOPBACK }, (request, response) => {
    request.resume();
    asked[count++]?.resolve(response);
  });
  const socket = net.connect(listener.address.port, "127.0.0.1");
  let text = "";
  const ended = new Promise<void>((resolve) => socket.on("close", () => resolve()));
  const until = (words: string) =>
    new Promise<void>((resolve) => {
      const look = () => text.includes(words) && resolve();
      socket.on("data", look);
      look();
    });
  socket.on("data", (bytes) => text += bytes.toString());
  return {
    listener,
    socket,
    ended,
    until,
    answers: asked.map(({ promise }) => promise),
    said: () => text,
  };
}

Deno.test("close() leaves the connection of an answer that has begun open, and answers its next request", async () => {
  const { listener, socket, answers, until, ended, said } = await open();
  socket.write(REQUEST);
  const first = await answers[0];
  first?.write("begun");
  await until("begun");
  match(said(), /keep-alive/i);
  const closed = listener.close(GRACE_MS);
  first?.end("over");
  await until("over");
  // Its client was told that it may go on, and does.
  socket.write(REQUEST);
  (await answers[1])?.end("second");
  await until("second");
  match(said().slice(said().indexOf("over")), /connection: close/);
  await Promise.all([ended, closed]);
});

Deno.test("close() tells the client of an answer that has not begun to close", async () => {
  const { listener, socket, answers, until, ended, said } = await open();
  socket.write(REQUEST);
  const first = await answers[0];
  const closed = listener.close(GRACE_MS);
  first?.end("only");
  await until("only");
  match(said(), /connection: close/);
  await Promise.all([ended, closed]);
});

Deno.test("close() ends a connection that has had no request for a moment", async () => {
  const { listener, socket, answers, until, ended, said } = await open();
  socket.write(REQUEST);
  (await answers[0])?.end("done");
  await until("done");
  const before = performance.now();
  await Promise.all([ended, listener.close(GRACE_MS, 100)]);
  ok(performance.now() - before < GRACE_MS / 2);
  equal(said().match(/HTTP\/1.1 200/g)?.length, 1);
});
