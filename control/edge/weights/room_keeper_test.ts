import { deepEqual, equal, match } from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { HeddleError } from "@heddle/proto/error";
import { type NodeAnswer, NodeAnswerSchema } from "@heddle/proto/gen/weights";
import { encodeWeightsState } from "@heddle/proto/weights_state";
import type { Audit } from "../../core/store_record.ts";
import { observe } from "../../core/observing/observe.ts";
import { modelOf, registered, T0, world as emptyWorld } from "../../core/testing/builders.ts";
import type { World } from "../../core/world.ts";
import { RoomKeeper } from "./room_keeper.ts";

const FOLDERS = ["first-0123456789abcd@v1", "second-0123456789abcd@v1"];

function worldWithOld(): World {
  const event = registered("n1");
  return observe(emptyWorld([modelOf({ name: "m" })]), {
    ...event,
    inventory: {
      ...event.inventory,
      modelDirs: [{ path: "/m", freeBytes: 5n, shared: false }],
      weights: {
        weights: FOLDERS.map((folder) => ({
          want: { source: `hf://org/${folder}`, include: [], exclude: [], version: "v1" },
          state: encodeWeightsState("ready"),
          folder,
          path: "",
          sizeBytes: 7n,
          doneBytes: 7n,
          reason: "",
          message: "",
          shardIds: [],
        })),
      },
    },
  }, T0);
}

function freed(bytes: bigint): NodeAnswer {
  return create(NodeAnswerSchema, { answer: { case: "freedBytes", value: bytes } });
}

/** A keeper on a clock of its own, over a node that answers as told. */
function keeperOver(answer: (folder: string) => NodeAnswer) {
  const asked: string[] = [];
  const audits: Audit[] = [];
  const counted: [string, number][] = [];
  const world = worldWithOld();
  let now = T0;
  const keeper = new RoomKeeper({
    loop: { world: () => world, now: () => now },
    requests: {
      ask: (_node, ask) => {
        const folder = ask.case === "removeWeights" ? ask.value : "";
        asked.push(folder ?? "");
        return Promise.resolve().then(() => answer(folder ?? ""));
      },
    },
    persist: (records) => {
      audits.push(...records);
      return Promise.resolve();
    },
    metrics: { weightsRemoved: (reason, bytes) => counted.push([reason, bytes]) },
    freeBelowBytes: 10,
    sure: () => true,
  });
  const lookAt = async (ms: number) => {
    now = T0 + ms;
    keeper.look();
    keeper.look();
    await keeper.idle();
  };
  return { asked, audits, counted, lookAt };
}

Deno.test("RoomKeeper removes one folder, says so, and waits for the node's next word", async () => {
  const { asked, audits, counted, lookAt } = keeperOver(() => freed(7n));
  await lookAt(0);
  deepEqual(asked, []);
  await lookAt(60_000);
  deepEqual(asked, [FOLDERS[0]]);
  deepEqual(counted, [["disk_pressure", 7]]);
  const [audit] = audits;
  equal(audit?.by, "control");
  equal(audit?.action, "remove_weights");
  equal(audit?.subject, `n1/${FOLDERS[0]}`);
  match(audit?.reason ?? "", /^disk_pressure: 0\.0 GiB are free/);
  await lookAt(62_000);
  equal(asked.length, 1);
});

Deno.test("RoomKeeper takes the next folder when the node refuses one, and says nothing", async () => {
  const { asked, audits, counted, lookAt } = keeperOver((folder) => {
    if (folder === FOLDERS[0]) {
      return create(NodeAnswerSchema, { reason: "in_use", message: "a shard uses it" });
    }
    throw new HeddleError("unavailable", "gone");
  });
  await lookAt(0);
  await lookAt(60_000);
  await lookAt(62_000);
  await lookAt(64_000);
  deepEqual(asked, FOLDERS);
  deepEqual([audits, counted], [[], []]);
});
