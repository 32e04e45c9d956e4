import { deepEqual, equal, match, ok } from "node:assert/strict";
import { parseNvlinkStatus } from "../nvidia/nvlink_status.ts";
import { judgeLinks, type LinkReadings, type LinkUser } from "./link_fault.ts";

const FIXTURES = new URL("../../../tests/fixtures/hardware/nvlink/", import.meta.url);

const PAIR: LinkUser = {
  gpus: [{ index: 0, uuid: "GPU-a" }, { index: 1, uuid: "GPU-b" }],
  hcas: [{ name: "mlx5_0", port: 1 }],
};

function readings(changes: Partial<LinkReadings> = {}): LinkReadings {
  const links = { active: 18, most: 18, fault: undefined };
  return {
    gpus: new Map([["GPU-a", links], ["GPU-b", links]]),
    pairs: [{ a: "GPU-a", b: "GPU-b", links: 18 }],
    ports: new Map([["mlx5_0:1", { down: undefined, wentDown: false }]]),
    ...changes,
  };
}

function withLinks(links: { active?: number; most?: number; fault?: string }): LinkReadings {
  const gpus = new Map(readings().gpus);
  gpus.set("GPU-b", { active: 18, most: 18, fault: undefined, ...links });
  return readings({ gpus });
}

function reasonOf(user: LinkUser, links: LinkReadings): string {
  const verdict = judgeLinks(user, links);
  return verdict.kind === "fault" ? verdict.reason : verdict.kind;
}

Deno.test("judgeLinks() finds a GPU that has fewer links than it had", () => {
  equal(reasonOf(PAIR, readings()), "well");
  equal(reasonOf(PAIR, withLinks({ active: 17 })), "nvlink_lost");
  equal(reasonOf(PAIR, withLinks({ active: 0 })), "nvlink_lost");
  // The agent was restarted after the loss: the topology shows no link any more.
  equal(reasonOf(PAIR, { ...withLinks({ active: 0 }), pairs: [] }), "nvlink_lost");
  equal(reasonOf(PAIR, withLinks({ fault: "Xid 74" })), "nvlink_fault");
});

Deno.test("judgeLinks() counts against the topology on a node that was never seen whole", () => {
  // A V100 with two of its six links inactive, in a matrix that says NV6.
  const text = Deno.readTextFileSync(new URL("v100-two-inactive.txt", FIXTURES));
  const [entry] = parseNvlinkStatus(text);
  ok(entry !== undefined);
  const [uuid, { active }] = entry;
  const user = { gpus: [{ index: 0, uuid }, { index: 1, uuid: "GPU-b" }], hcas: [] };
  const gpus = new Map([
    [uuid, { active, most: active, fault: undefined }],
    ["GPU-b", { active: 6, most: 6, fault: undefined }],
  ]);
  const paired = (links: number) => [{ a: uuid, b: "GPU-b", links }];
  equal(reasonOf(user, readings({ gpus, pairs: paired(6) })), "nvlink_lost");
  equal(reasonOf(user, readings({ gpus, pairs: paired(2) })), "well");
});

Deno.test("judgeLinks() calls nothing lost that was never there", () => {
  const never = { active: 0, most: 0, fault: undefined };
  const gpus = new Map([["GPU-a", never], ["GPU-b", never]]);
  equal(reasonOf(PAIR, readings({ gpus, pairs: [] })), "well");
  equal(reasonOf(PAIR, readings({ gpus: new Map(), pairs: [] })), "well");
  // A link between other GPUs than the shard's.
  const others = [{ a: "GPU-a", b: "GPU-z", links: 4 }];
  equal(reasonOf(PAIR, readings({ gpus, pairs: others })), "well");
  const alone = { gpus: PAIR.gpus.slice(1), hcas: [] };
  equal(reasonOf(alone, withLinks({ active: 0 })), "well");
});

Deno.test("judgeLinks() never takes the lack of a reading for a fault, nor for its end", () => {
  equal(reasonOf(PAIR, readings({ gpus: new Map() })), "unknown");
  equal(reasonOf(PAIR, readings({ ports: undefined })), "unknown");
  // A fault that is known outweighs what is not.
  equal(reasonOf(PAIR, { ...withLinks({ active: 1 }), ports: undefined }), "nvlink_lost");
  const neither = { gpus: PAIR.gpus.slice(1), hcas: [] };
  equal(reasonOf(neither, readings({ gpus: new Map(), ports: undefined })), "well");
});

Deno.test("judgeLinks() finds a port that is down, gone, or not to be relied on", () => {
  const port = (link: { down?: string; wentDown?: boolean }) =>
    readings({ ports: new Map([["mlx5_0:1", { down: undefined, wentDown: false, ...link }]]) });
  equal(reasonOf(PAIR, port({ down: "mlx5_0 port 1 is in state 1: DOWN" })), "hca_link_down");
  equal(reasonOf(PAIR, port({ wentDown: true })), "hca_link_unstable");
  const gone = judgeLinks(PAIR, readings({ ports: new Map() }));
  ok(gone.kind === "fault");
  match(gone.message, /mlx5_0 port 1, which the engine was given, is gone/);
  deepEqual(judgeLinks({ gpus: [], hcas: [] }, readings({ ports: new Map() })), { kind: "well" });
});
