/** The agent beside an attached engine, with a control that answers as the test says. */
import { deepEqual, equal, ok } from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { type ClaimRequest, ClaimResponseSchema } from "@heddle/proto/gen/attach";
import { decodeAttachedState } from "@heddle/proto/attached_state";
import { attachSettings } from "../core/attach/settings.ts";
import type { CallResult, NvidiaTool } from "../edge/hardware/nvidia_smi.ts";
import { attach } from "./attach.ts";

type Told = Parameters<typeof attachSettings>[0];
const MISSING: CallResult = { kind: "not_started", why: "missing", message: "" };

/** Runs it until control has been asked so often; `refuse` says which of the claims fail. */
async function claims(
  count: number,
  { told = {}, smi = () => MISSING, refuse = () => false }: {
    readonly told?: Told;
    readonly smi?: (call: string) => CallResult;
    readonly refuse?: (index: number) => boolean;
  } = {},
): Promise<{ readonly claims: readonly ClaimRequest[]; readonly calls: readonly string[] }> {
  const stop = new AbortController();
  const taken: ClaimRequest[] = [];
  const calls: string[] = [];
  const tool: NvidiaTool = {
    path: "/fake",
    run: ([first = "", ...rest]) => {
      const call = [first.replace(/=.*/, ""), ...rest].join(" ");
      calls.push(call);
      return Promise.resolve(smi(call));
    },
    idle: () => Promise.resolve(),
  };
  await attach({
    settings: attachSettings({ engineId: "e", controlUrl: "http://127.0.0.1:1", ...told }),
    control: {
      claim(request) {
        taken.push(request);
        if (taken.length === count) stop.abort();
        if (refuse(taken.length - 1)) return Promise.reject(new Error("control is away"));
        return Promise.resolve(create(ClaimResponseSchema, { leaseMs: 1_500n, published: true }));
      },
    },
    nvidiaSmi: [tool],
    du: [],
    env: { hubCache: undefined, hfHome: undefined, home: undefined },
    now: () => performance.now(),
    signal: stop.signal,
  });
  return { claims: taken, calls };
}

const state = (claim: ClaimRequest | undefined) => decodeAttachedState(claim?.state ?? 0);

Deno.test("attach() registers an engine without cards, without a health URL, and without a host id", async () => {
  const { claims: [claim] } = await claims(1);
  equal(state(claim), "serving");
  deepEqual(
    claim?.nodes.map(({ index, hostId, cards, cardsRead, nvlinks }) => ({
      index,
      hostId,
      cards,
      cardsRead,
      nvlinks,
    })),
    [{ index: 0, hostId: "", cards: [], cardsRead: true, nvlinks: undefined }],
  );
  deepEqual([claim?.endpoint, claim?.enginePort], ["", undefined]);
});

Deno.test("attach() speaks for every node that it is told of, and makes up nothing about the others", async () => {
  const smi = (call: string): CallResult => ({
    kind: "finished",
    code: 0,
    stdout: call.startsWith("--query-gpu") ? "GPU-1, 81559, NVIDIA H100 80GB HBM3\n" : "",
    stderr: "",
  });
  const { claims: [claim] } = await claims(1, { told: { nodeIndex: "2-3", hostId: "h" }, smi });
  deepEqual(
    claim?.nodes.map(({ index, hostId, cards, cardsRead }) => [
      index,
      hostId,
      cards.length,
      cardsRead,
    ]),
    [[2, "h", 1, true], [3, "", 0, false]],
  );
});

Deno.test("attach() asks for impairments only of an engine that serves", async () => {
  const smi = (call: string): CallResult => ({
    kind: "finished",
    code: 0,
    stdout: call === "nvlink -s"
      ? "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-1)\n\t Link 0: 26 GB/s\n\t Link 1: <inactive>\n"
      : "GPU-1, 81559, NVIDIA H100 80GB HBM3\n",
    stderr: "",
  });
  const serving = await claims(1, { smi });
  equal(state(serving.claims[0]), "degraded");
  equal(serving.claims[0]?.reason, "nvlink_lost");
  ok(serving.calls.includes("nvlink -s"));
  // Nobody listens there: it is not ready, and that outweighs the link.
  const closed = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const port = "port" in closed.addr ? closed.addr.port : 0;
  closed.close();
  const healthUrl = `http://127.0.0.1:${port}/health`;
  const loading = await claims(1, { smi, told: { healthUrl } });
  equal(state(loading.claims[0]), "assembling");
  equal(loading.claims[0]?.enginePort, port);
  ok(!loading.calls.includes("nvlink -s"));
});

Deno.test("attach() takes no reading for no claim and no impairment", async () => {
  const smi = (call: string): CallResult =>
    call === "nvlink -s"
      ? { kind: "hung", call, deadlineMs: 1 }
      : { kind: "finished", code: 0, stdout: "GPU-1, 81559, NVIDIA H100 80GB HBM3\n", stderr: "" };
  const { claims: [claim] } = await claims(1, { smi });
  equal(state(claim), "serving");
  equal(claim?.nodes[0]?.nvlinks, undefined);
});

Deno.test("attach() goes on when control refuses, and renews at a third of what it answers", async () => {
  const began = performance.now();
  // After an answer of 1.5 s the next ones come within half a second each, refused or not.
  const { claims: all } = await claims(4, { refuse: (index) => index === 1 });
  equal(all.length, 4);
  equal(new Set(all.map(({ agentInstance }) => agentInstance)).size, 1);
  ok(performance.now() - began < 4_500);
});
