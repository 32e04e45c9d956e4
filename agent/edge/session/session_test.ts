import { NodeAnswerSchema } from "@heddle/proto/gen/weights";
import { deepEqual, equal, ok } from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { connectRpc } from "@heddle/common/rpc_client";
import {
  CancelLogSchema,
  HeartbeatSchema,
  ReadLogSchema,
  RegisteredSchema,
  RegisterSchema,
  StartShardSchema,
} from "@heddle/proto/gen/agent";
import { ShardSpecSchema, ShardState, ShardStatusSchema } from "@heddle/proto/gen/types";
import { encodeRevision } from "@heddle/proto/revision";
import { freePort } from "../engine/free_port_fake.ts";
import { startControlFake } from "./control_fake.ts";
import { encodeResult } from "./encode.ts";
import { Session, type SessionHooks } from "./session.ts";

/** A session with an agent behind it that knows nothing. */
function open(
  controls: readonly string[],
  hooks: Partial<SessionHooks> = {},
): { session: Session; close(): Promise<void> } {
  const session = new Session({
    node: "n1",
    controls,
    connect: (url) => Promise.resolve(connectRpc({ url, tls: undefined })),
    hooks: {
      register: () => Promise.resolve(create(RegisterSchema, { node: "n1" })),
      heartbeat: () => Promise.resolve(create(HeartbeatSchema, { hardwarePresent: true })),
      startShard: () => Promise.resolve([]),
      stopShard: () => Promise.resolve([]),
      readLog: () => Promise.resolve(),
      nodeRequest: ({ requestId }) => Promise.resolve(create(NodeAnswerSchema, { requestId })),
      onRegistered: () => {},
      onLost: () => {},
      ...hooks,
    },
    backoff: { firstMs: 20, maxMs: 100 },
  });
  const stop = new AbortController();
  const running = session.run(stop.signal);
  return {
    session,
    async close() {
      stop.abort();
      await running;
    },
  };
}

Deno.test("the first message is the registration, and heartbeats follow at control's pace", async () => {
  const control = await startControlFake({ heartbeatMs: 200 });
  const agent = open([control.url]);
  const session = await control.session();
  equal(session.register.node, "n1");
  equal((await session.heartbeat()).hardwarePresent, true);
  equal((await session.heartbeat()).hardwarePresent, true);
  equal(agent.session.notConnected, undefined);
  await agent.close();
  await control.close();
});

Deno.test("a control that stands by is left for the next one at once", async () => {
  const standby = await startControlFake({ standby: true });
  const control = await startControlFake();
  const gone = `http://127.0.0.1:${freePort()}`;
  const begunAt = performance.now();
  const agent = open([gone, standby.url, control.url]);
  await control.session();
  ok(performance.now() - begunAt < 2_000, "without a wait");
  equal(standby.attempts, 1);
  await agent.close();
  await Promise.all([standby.close(), control.close()]);
});

Deno.test("a lost session is made again, and begins with the preferred control", async () => {
  const preferred = await startControlFake();
  const second = await startControlFake();
  let lost = 0;
  const agent = open([preferred.url, second.url], { onLost: () => lost++ });
  for (let round = 1; round <= 3; round++) {
    const session = await preferred.session();
    equal(session.register.node, "n1", "everything is said again");
    session.end();
  }
  await preferred.session();
  equal(lost, 3);
  equal(second.attempts, 0);
  await agent.close();
  await Promise.all([preferred.close(), second.close()]);
});

Deno.test("while no control is there the agent tries for ever, and then registers", async () => {
  const port = freePort();
  const agent = open([`http://127.0.0.1:${port}`]);
  equal(agent.session.notConnected, "not connected to control");
  agent.session.tell(create(ShardStatusSchema, { shardId: "s" }));
  const control = await startControlFake({ port });
  await control.session();
  await agent.close();
  await control.close();
});

Deno.test("what happens while the registration is prepared is told after it, once", async () => {
  const control = await startControlFake();
  const begun = Promise.withResolvers<void>();
  const go = Promise.withResolvers<void>();
  const agent = open([control.url], {
    async register() {
      begun.resolve();
      await go.promise;
      return create(RegisterSchema, { node: "n1" });
    },
  });
  await begun.promise;
  agent.session.tell(create(ShardStatusSchema, { shardId: "in the registration" }));
  go.resolve();
  const session = await control.session();
  agent.session.tell(create(ShardStatusSchema, { shardId: "later", state: ShardState.READY }));
  equal((await session.status("ready")).shardId, "later");
  await agent.close();
  await control.close();
});

Deno.test("commands are answered in order, each with what its handler says", async () => {
  const control = await startControlFake();
  const agent = open([control.url], {
    startShard: (command) => {
      const shardId = command.spec?.shardId ?? "";
      const revision = { term: 1, sequence: 1 };
      return Promise.resolve([{
        case: "commandResult",
        value: encodeResult({ shardId, revision }, {
          kind: "refused",
          reason: "gpu_in_use",
          detail: "held",
        }),
      }]);
    },
  });
  const session = await control.session();
  for (const shardId of ["a", "b"]) {
    session.send({
      case: "startShard",
      value: create(StartShardSchema, {
        revision: encodeRevision({ term: 1, sequence: 1 }),
        spec: create(ShardSpecSchema, { shardId }),
      }),
    });
  }
  const results = [await session.result(), await session.result()];
  deepEqual(results.map(({ shardId }) => shardId), ["a", "b"]);
  deepEqual(
    results.map(({ accepted, reason }) => [accepted, reason]),
    [[false, "gpu_in_use"], [false, "gpu_in_use"]],
  );
  await agent.close();
  await control.close();
});

Deno.test("a second `registered` on a live stream is no new session", async () => {
  const control = await startControlFake();
  let registered = 0;
  const agent = open([control.url], { onRegistered: () => registered++ });
  const session = await control.session();
  session.send({
    case: "registered",
    value: create(RegisteredSchema, { term: 2n, heartbeatIntervalMs: 200, settled: true }),
  });
  agent.session.nudge();
  await session.heartbeat();
  ok(registered >= 1);
  equal(agent.session.notConnected, undefined);
  await agent.close();
  await control.close();
});

Deno.test("a log is sent in chunks until it is cancelled or ends", async () => {
  const control = await startControlFake();
  const cancelled = Promise.withResolvers<void>();
  const agent = open([control.url], {
    async readLog(command, send, signal) {
      await send({ lines: [`of ${command.source}`], end: false, error: "" });
      if (command.follow) {
        await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
        cancelled.resolve();
      } else {
        await send({ lines: [], end: true, error: "" });
      }
    },
  });
  const session = await control.session();
  const read = (requestId: string, follow: boolean) =>
    session.send({
      case: "readLog",
      value: create(ReadLogSchema, { requestId, source: "agent", tailLines: 5, follow }),
    });
  read("1", false);
  const first = await session.logChunk();
  deepEqual([first.requestId, first.lines, first.end], ["1", ["of agent"], false]);
  equal((await session.logChunk()).end, true);
  read("2", true);
  equal((await session.logChunk()).requestId, "2");
  session.send({ case: "cancelLog", value: create(CancelLogSchema, { requestId: "2" }) });
  await cancelled.promise;
  await agent.close();
  await control.close();
});
