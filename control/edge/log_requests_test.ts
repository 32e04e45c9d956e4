import { deepEqual, equal, rejects } from "node:assert/strict";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { HeddleError } from "@heddle/proto/error";
import { LogChunkSchema } from "@heddle/proto/gen/agent";
import { LogRequests } from "./log_requests.ts";
import type { NodeMessage } from "./node_streams.ts";

const source = { node: "n1", source: "s1", tailLines: 10, follow: true };
const never = new AbortController().signal;

function recorded() {
  const sent: NodeMessage[] = [];
  return { sent, logs: new LogRequests((_node, message) => sent.push(message)) };
}

function requestIds(sent: readonly NodeMessage[]): string[] {
  return sent.flatMap((message) =>
    message.case === "readLog" ? [message.value.requestId ?? ""] : []
  );
}

const chunk = (init: MessageInitShape<typeof LogChunkSchema>) => create(LogChunkSchema, init);

Deno.test("LogRequests keeps readers of one node apart by request id, and ends with the source", async () => {
  const { sent, logs } = recorded();
  const readers = [logs.read(source, never), logs.read(source, never)];
  const firsts = readers.map((reader) => reader.next());
  const [a = "", b = ""] = requestIds(sent);
  logs.accept("n1", chunk({ requestId: b, lines: ["b1"] }));
  logs.accept("n1", chunk({ requestId: a, lines: ["a1", "a2"] }));
  logs.accept("n1", chunk({ requestId: a, lines: ["a3"], end: true }));
  deepEqual((await Promise.all(firsts)).map(({ value }) => value), [["a1", "a2"], ["b1"]]);
  deepEqual(await readers[0]?.next(), { done: false, value: ["a3"] });
  deepEqual(await readers[0]?.next(), { done: true, value: undefined });
  await readers[1]?.return(undefined);
  deepEqual(sent.map((message) => message.case), ["readLog", "readLog", "cancelLog"]);
  equal(logs.size, 0);
});

Deno.test("LogRequests ignores chunks from a node that was not asked", async () => {
  const { sent, logs } = recorded();
  const reader = logs.read(source, never);
  const first = reader.next();
  const [id = ""] = requestIds(sent);
  logs.accept("n2", chunk({ requestId: id, lines: ["forged"], end: true }));
  logs.accept("n1", chunk({ requestId: "unknown", lines: ["late"] }));
  logs.accept("n1", chunk({ requestId: id, lines: ["true"] }));
  deepEqual((await first).value, ["true"]);
  await reader.return(undefined);
});

Deno.test("LogRequests tells the node when the operator has left", async () => {
  const { sent, logs } = recorded();
  const leave = new AbortController();
  const reader = logs.read(source, leave.signal);
  const first = reader.next();
  leave.abort();
  equal((await first).done, true);
  deepEqual(sent.map((message) => message.case), ["readLog", "cancelLog"]);
  equal(logs.size, 0);
});

Deno.test("LogRequests ends readers whose node went away or refused, without a cancel", async () => {
  const { sent, logs } = recorded();
  const gone = logs.read(source, never).next();
  const other = logs.read({ ...source, node: "n2" }, never);
  const refused = other.next();
  logs.nodeGone("n1");
  await rejects(gone, /node "n1": its connection was lost/);
  logs.accept("n2", chunk({ requestId: requestIds(sent)[1] ?? "", error: "no shard s1" }));
  await rejects(refused, /Cannot read logs of node "n2": no shard s1/);
  deepEqual(sent.map((message) => message.case), ["readLog", "readLog"]);
  equal(logs.size, 0);
});

Deno.test("LogRequests stops a reader that is slower than what it follows", async () => {
  const { sent, logs } = recorded();
  const reader = logs.read(source, never);
  const first = reader.next();
  const [id = ""] = requestIds(sent);
  logs.accept("n1", chunk({ requestId: id, lines: ["0"] }));
  await first;
  for (let count = 0; count < 10_000; count++) {
    logs.accept("n1", chunk({ requestId: id, lines: [String(count)] }));
  }
  await rejects(reader.next(), /come faster than they are read/);
  deepEqual(sent.at(-1)?.case, "cancelLog");
});

Deno.test("LogRequests bounds its readers, and one that cannot be asked is forgotten", async () => {
  const { logs } = recorded();
  const readers = Array.from({ length: 64 }, () => logs.read(source, never));
  const waiting = readers.map((reader) => reader.next());
  await rejects(logs.read(source, never).next(), /64 others read already/);
  logs.nodeGone("n1");
  await Promise.allSettled(waiting);
  const broken = new LogRequests(() => {
    throw new HeddleError("unavailable", "Cannot send: not connected");
  });
  await rejects(broken.read(source, never).next(), /not connected/);
  equal(broken.size, 0);
});
