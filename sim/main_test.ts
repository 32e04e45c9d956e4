/** The simulated engine as what starts and stops it sees it. */
import assert from "node:assert/strict";
import { VERSION } from "@heddle/common/version";
import { freePort, type SimProcess, startProcess } from "./process_case.ts";
import { chatCase } from "./simulation_case.ts";

const QUICK = ["--port", "0", "--sim-load-ms", "0", "--sim-overhead-ms", "0"];

async function refused(url: string): Promise<boolean> {
  try {
    await (await fetch(url)).body?.cancel();
    return false;
  } catch {
    return true;
  }
}

async function stream(url: string): Promise<ReadableStreamDefaultReader<Uint8Array>> {
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    body: JSON.stringify(chatCase({ model: "m", stream: true, ignore_eos: true })),
  });
  const reader = response.body?.getReader();
  assert.ok(reader !== undefined);
  await reader.read();
  return reader;
}

/** Reads to the end; false when the connection was cut. */
async function readOut(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<boolean> {
  try {
    while (!(await reader.read()).done);
    return true;
  } catch {
    return false;
  }
}

Deno.test("heddle-sim --version and --help say so and end well", async () => {
  await using version = startProcess(["--version"]);
  await using help = startProcess(["--help"]);
  const said = await version.ended;
  assert.deepEqual(said, { code: 0, output: `sim ${VERSION}\n` });
  const helped = await help.ended;
  assert.equal(helped.code, 0);
  assert.match(helped.output, /--sim-decode-tokens-per-s X/);
});

Deno.test("heddle-sim refuses a command line it cannot read with code 2", async () => {
  await using wrong = startProcess(["serve", "m", "--prot", "1"]);
  const { code, output } = await wrong.ended;
  assert.equal(code, 2);
  assert.equal(output, "heddle-sim: unknown option --prot; did you mean --port?\n");
});

Deno.test("heddle-sim refuses connections while it loads, and serves after", async () => {
  const port = await freePort();
  const args = ["serve", "m", "--port", String(port), "--sim-load-ms", "400"];
  await using sim = startProcess(args, { HEDDLE_SIM_FAULT: "slow_load:ms=200" });
  await sim.line(/Loading model/);
  assert.ok(await refused(`http://127.0.0.1:${port}/health`));
  const url = await sim.url();
  assert.equal(url, `http://127.0.0.1:${port}`);
  assert.ok(!await refused(`${url}/health`));

  await using second = startProcess(args);
  const { code, output } = await second.ended;
  assert.equal(code, 1, "the port is taken");
  assert.match(output, /\[Errno 98\].*address already in use/);
});

Deno.test("heddle-sim that never gets ready keeps its port closed and stops when told", async () => {
  const port = await freePort();
  await using sim = startProcess(
    ["serve", "m", "--port", String(port), "--sim-load-ms", "0", "--sim-fault", "never_ready"],
  );
  await sim.line(/Loading model/);
  assert.ok(await refused(`http://127.0.0.1:${port}/health`));
  sim.signal("SIGTERM");
  assert.equal((await sim.ended).code, 0);
});

Deno.test("heddle-sim that dies while loading leaves its cause in the log", async () => {
  await using sim = startProcess(
    ["serve", "m", ...QUICK, "--sim-fault", "die_loading:at_ms=1,code=7,cause=oom"],
  );
  const { code, output } = await sim.ended;
  assert.equal(code, 7);
  assert.match(output, /CUDA out of memory/);
  assert.match(output, /Engine core initialization failed\. See root cause above/);
});

Deno.test("heddle-sim that is killed by a fault is gone in mid-stream, with its code", async () => {
  await using sim = startProcess(["serve", "m", ...QUICK, "--sim-fault", "kill:after_tokens=4"]);
  const reader = await stream(await sim.url());
  assert.equal(await readOut(reader), false);
  assert.equal((await sim.ended).code, 137);
});

Deno.test("heddle-sim on SIGTERM aborts what runs and ends with 0", async () => {
  await using sim = startProcess(["serve", "m", ...QUICK]);
  const reader = await stream(await sim.url());
  sim.signal("SIGTERM");
  await readOut(reader);
  assert.equal((await sim.ended).code, 0);
});

Deno.test("heddle-sim drains for --shutdown-timeout, and a second signal ends that", async () => {
  await using sim = startProcess(["serve", "m", ...QUICK, "--shutdown-timeout", "600"]);
  const url = await sim.url();
  const reader = await stream(url);
  sim.signal("SIGTERM");
  await sim.line(/shutting down/);
  assert.ok(await refused(`${url}/health`));
  assert.equal((await reader.read()).done, false, "the stream goes on");
  sim.signal("SIGTERM");
  await readOut(reader);
  assert.equal((await sim.ended).code, 0);
});

Deno.test("heddle-sim that ignores SIGTERM serves on", async () => {
  await using sim = startProcess(["serve", "m", ...QUICK, "--sim-fault", "ignore_sigterm"]);
  const url = await sim.url();
  sim.signal("SIGTERM");
  await sim.line(/SIGTERM is ignored/);
  assert.ok(!await refused(`${url}/health`));
});

function ranks(port: number, fabrics: readonly string[]): SimProcess[] {
  return fabrics.map((fabric, rank) =>
    startProcess([
      ...["serve", "m", ...QUICK, "--nnodes", String(fabrics.length), "--node-rank", String(rank)],
      ...["--master-addr", "127.0.0.1", "--master-port", String(port), "--sim-fabric", fabric],
      ...(rank > 0 ? ["--headless"] : []),
    ])
  );
}

Deno.test("ranks meet before rank 0 serves, and none outlives another", async () => {
  const [leader, worker] = ranks(await freePort(), ["ib-a", "ib-a"]);
  assert.ok(leader !== undefined && worker !== undefined);
  await using _leader = leader;
  await using _worker = worker;
  const url = await leader.url();
  await worker.line(/serves no HTTP/);
  const answer = await fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    body: JSON.stringify(chatCase({ model: "m", max_tokens: 2 })),
  });
  assert.equal(answer.status, 200);
  await answer.body?.cancel();
  worker.signal("SIGKILL");
  const ended = await leader.ended;
  assert.equal(ended.code, 1);
  assert.match(ended.output, /rank 1 is gone/);
});

Deno.test("nodes of a data-parallel engine meet as ranks do, and a dead leader ends the others", async () => {
  const port = String(await freePort());
  const both = ["serve", "m", ...QUICK, "-dp", "4", "-dpl", "2", "--data-parallel-rpc-port", port];
  await using leader = startProcess(both);
  await using worker = startProcess([...both, "--headless", "--data-parallel-start-rank", "2"]);
  await leader.url();
  await worker.line(/rank 1 is up and serves no HTTP/);
  leader.signal("SIGKILL");
  const ended = await worker.ended;
  assert.equal(ended.code, 1);
  assert.match(ended.output, /rank 0 is gone/);
});

Deno.test("ranks on two fabrics start, look healthy, and never answer", async () => {
  const [leader, worker] = ranks(await freePort(), ["ib-a", "ib-b"]);
  assert.ok(leader !== undefined && worker !== undefined);
  await using _leader = leader;
  await using _worker = worker;
  const url = await leader.url();
  const controller = new AbortController();
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    signal: controller.signal,
    body: JSON.stringify(chatCase({ model: "m", stream: true })),
  });
  assert.equal(response.status, 200);
  await leader.line(/collective will not return/);
  assert.ok(!await refused(`${url}/health`));
  const metrics = await (await fetch(`${url}/metrics`)).text();
  assert.match(metrics, /vllm:generation_tokens_total{.*} 0\.0/);
  controller.abort();
  await response.body?.cancel().catch(() => {});
});

Deno.test("rank 0 gives up when a rank does not come", async () => {
  await using leader = startProcess([
    ...["serve", "m", ...QUICK, "--nnodes", "2", "--master-port", String(await freePort())],
    ...["--sim-rendezvous-timeout-ms", "50"],
  ]);
  const { code, output } = await leader.ended;
  assert.equal(code, 1);
  assert.match(output, /DistStoreError: Timed out .* 1\/2 clients joined/);
});
