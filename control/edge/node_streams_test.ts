import { deepEqual, equal, rejects, throws } from "node:assert/strict";
import { NODE_QUEUE_MAX, type NodeMessage, NodeStreams } from "./node_streams.ts";

const cancel = (requestId: string): NodeMessage => ({ case: "cancelLog", value: { requestId } });

function recorded() {
  const ended: string[] = [];
  return { streams: new NodeStreams((node) => ended.push(node)), ended };
}

Deno.test("NodeStreams sends to the newest stream and ends the older one with a reason", async () => {
  const { streams, ended } = recorded();
  const older = streams.open("n1");
  const waiting = older.outgoing.next();
  const newer = streams.open("n1");
  await rejects(waiting, /Stream of node "n1" was replaced/);
  streams.close(older);
  deepEqual(ended, [], "the node still has a stream");
  streams.send("n1", cancel("a"));
  equal((await newer.outgoing.next()).value?.message.case, "cancelLog");
  streams.close(newer);
  streams.close(newer);
  deepEqual(ended, ["n1"]);
});

Deno.test("NodeStreams.send() to a node without a stream is unavailable", () => {
  const { streams } = recorded();
  throws(() => streams.send("n1", cancel("a")), { code: "unavailable", message: /not connected/ });
});

Deno.test("NodeStreams.send() to a node that does not read is an error and ends its stream", async () => {
  const { streams, ended } = recorded();
  const stream = streams.open("n1");
  const other = streams.open("n2");
  for (let count = 0; count < NODE_QUEUE_MAX; count++) streams.send("n1", cancel("a"));
  deepEqual(ended, []);
  throws(() => streams.send("n1", cancel("a")), { code: "exhausted" });
  deepEqual(ended, ["n1"]);
  await rejects(stream.outgoing.next(), /messages wait that it does not read/);
  throws(() => streams.send("n1", cancel("a")), { code: "unavailable" });
  equal(other.outgoing.ended, false);
});
