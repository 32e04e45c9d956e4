import { deepEqual, equal, match } from "node:assert/strict";
import { join } from "node:path";
import type { CallResult, NvidiaTool } from "../hardware/nvidia_smi.ts";
import { lookAtCards, lookAtHealth, lookAtLinks, measure } from "./look.ts";

const { signal } = new AbortController();
const DU = ["/usr/bin/du", "/bin/du"];

function tool(answer: (args: readonly string[]) => CallResult): NvidiaTool {
  return {
    path: "/fake/nvidia-smi",
    run: (args) => Promise.resolve(answer(args)),
    idle: () => Promise.resolve(),
  };
}

const prints = (stdout: string, code = 0): CallResult => ({
  kind: "finished",
  code,
  stdout,
  stderr: "",
});
const MISSING: CallResult = { kind: "not_started", why: "missing", message: "not there" };

Deno.test("lookAtCards() finds no cards where there is no nvidia-smi, and where it finds none", async () => {
  const none = { tool: undefined, cards: [] };
  deepEqual(await lookAtCards([], signal), none);
  deepEqual(await lookAtCards([tool(() => MISSING), tool(() => MISSING)], signal), none);
  const { cards } = await lookAtCards([tool(() => prints("No devices were found\n", 6))], signal);
  deepEqual(cards, []);
});

Deno.test("lookAtCards() knows no cards where nvidia-smi does not answer", async () => {
  for (
    const result of [
      { kind: "hung", call: "x", deadlineMs: 1 } as const,
      { kind: "blocked", call: "x" } as const,
      { kind: "not_started", why: "failed", message: "" } as const,
      prints("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n", 9),
    ]
  ) {
    equal((await lookAtCards([tool(() => result)], signal)).cards, undefined);
  }
});

Deno.test("lookAtCards() reads the first nvidia-smi that is there", async () => {
  const smi = tool(() =>
    prints(
      "GPU-aaaaaaaa-0000-0000-0000-000000000001, 81559, NVIDIA H100 80GB HBM3\n" +
        "GPU-aaaaaaaa-0000-0000-0000-000000000002, [N/A], NVIDIA, odd\n",
    )
  );
  const { cards } = await lookAtCards([tool(() => MISSING), smi], signal);
  deepEqual(cards?.map(({ name, gpuClass, memoryTotalMib }) => [name, gpuClass, memoryTotalMib]), [
    ["NVIDIA H100 80GB HBM3", "h100-80g", 81559],
  ]);
});

Deno.test("lookAtLinks() has no reading when nvidia-smi fails or hangs", async () => {
  equal(await lookAtLinks(tool(() => prints("", 1)), signal), undefined);
  equal(
    await lookAtLinks(tool(() => ({ kind: "hung", call: "x", deadlineMs: 1 })), signal),
    undefined,
  );
  const some = await lookAtLinks(
    tool(() => prints("GPU 0: A (UUID: GPU-1)\n\t Link 0: 25 GB/s\n")),
    signal,
  );
  deepEqual([...some ?? []], [["GPU-1", { active: 1, inactive: 0 }]]);
});

Deno.test("measure() takes the first place that is there, and tells none from unreadable", async () => {
  const folder = await Deno.makeTempDir();
  try {
    await Deno.writeFile(join(folder, "weights"), new Uint8Array(1_000_000).fill(1));
    const options = { du: DU, now: () => 7, signal };
    const found = await measure([join(folder, "absent"), folder], options);
    equal(found.kind, "read");
    if (found.kind !== "read") return;
    deepEqual([found.directory, found.at], [folder, 7]);
    equal(Math.round(found.bytes / 1_000_000), 1);
    deepEqual(await measure([join(folder, "absent")], options), { kind: "none" });
    deepEqual(await measure([], options), { kind: "none" });
    const odd = await measure([join(folder, "weights", "below a file")], options);
    equal(odd.kind, "unavailable");
    const without = await measure([folder], { ...options, du: ["/nowhere/du"] });
    equal(without.kind === "unavailable" && without.why, "there is no du here");
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("lookAtHealth() says why an engine is not ready", async () => {
  let status = 200;
  const server = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen: () => {} },
    (request) => new Response(null, { status: request.url.endsWith("/up?x=1") ? status : 404 }),
  );
  const url = new URL(`http://127.0.0.1:${server.addr.port}/up?x=1`);
  equal(await lookAtHealth(url, signal), undefined);
  status = 503;
  match(await lookAtHealth(url, signal) ?? "", /answers 503/);
  await server.shutdown();
  match(await lookAtHealth(url, signal) ?? "", /nothing listens/);
});
