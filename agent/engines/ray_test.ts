import { deepEqual, equal, match, ok } from "node:assert/strict";
import type { ShardSpec } from "../core/shard/shard.ts";
import { aSpec } from "../core/shard/shard_fake.ts";
import { vllm } from "./vllm.ts";
import { sim } from "./sim.ts";

const KEY = "sk-heddle-replica-key";

function build(spec: Partial<ShardSpec>) {
  const rank = spec.rank ?? 0;
  const built = vllm.build({
    spec: aSpec({
      engine: "vllm",
      source: "/models/llama",
      model: "chat",
      launchMode: "ray",
      tp: 8,
      pp: 2,
      shardCount: 2,
      portFirst: rank === 0 ? 20_000 : 20_512,
      leaderAddress: "10.0.0.1",
      leaderPort: 20_000,
      gpus: Array.from({ length: 8 }, (_, index) => ({ index, uuid: `GPU-${index}` })),
      ...spec,
    }),
    engine: { name: "vllm", path: "/opt/vllm/bin/vllm", version: "1" },
    address: `10.0.0.${rank + 1}`,
    apiKey: rank === 0 ? KEY : "",
    modelDirs: [],
  });
  ok(built.kind === "processes", JSON.stringify(built));
  return built.processes;
}

/** An argument pair to a line, without the script that waits. */
function shown(argv: readonly string[] | undefined): string {
  const command = argv?.filter((_, index) => index !== 2) ?? [];
  return `${command.join(" ").replaceAll(/ (?=--[a-z])/g, "\n  ")}\n`;
}

const nodePorts = (first: number) =>
  `  --node-manager-port ${first + 33}
  --object-manager-port ${first + 34}
  --runtime-env-agent-port ${first + 35}
  --dashboard-agent-grpc-port ${first + 36}
  --dashboard-agent-listen-port ${first + 37}
  --metrics-export-port ${first + 38}
  --min-worker-port ${first + 64}
  --max-worker-port ${first + 255}
  --disable-usage-stats
  --block
`;

Deno.test("the first node has Ray's head and, after it, the server once", () => {
  const [head, server, ...more] = build({});
  deepEqual([head?.name, server?.name, more.length], ["head", "server", 0]);
  equal(
    shown(head?.argv),
    `/bin/sh -c heddle-ray 20039 /opt/vllm/bin/ray start
  --head
  --port 20032
  --include-dashboard=false
  --node-ip-address 10.0.0.1
  --num-gpus 8
${nodePorts(20_000)}`,
  );
  equal(
    shown(server?.argv),
    `/bin/sh -c heddle-ray /opt/vllm/bin/ray 10.0.0.1:20032 16 /opt/vllm/bin/vllm serve /models/llama
  --served-model-name chat
  --host 10.0.0.1
  --port 20000
  --shutdown-timeout 5
  --tensor-parallel-size 8
  --pipeline-parallel-size 2
  --distributed-executor-backend ray
`,
  );
  equal(server?.env["RAY_ADDRESS"], "10.0.0.1:20032");
  equal(head?.env["RAY_ADDRESS"], undefined, "a head that is told of a head would join it");
  equal(server?.env["VLLM_PORT"], undefined, "across nodes it makes ranks collide");
});

Deno.test("each other node has one worker, with its own address and ports, and no key", () => {
  const [worker, ...more] = build({ rank: 1 });
  equal(more.length, 0);
  equal(
    shown(worker?.argv),
    `/bin/sh -c heddle-ray /opt/vllm/bin/ray 10.0.0.1:20032 /opt/vllm/bin/ray start
  --address 10.0.0.1:20032
  --node-ip-address 10.0.0.2
  --num-gpus 8
${nodePorts(20_512)}`,
  );
  equal(worker?.env["VLLM_HOST_IP"], "10.0.0.2");
  ok(!JSON.stringify(worker).includes(KEY));
});

Deno.test("data-parallel copies over Ray say so, and may span nodes where one is larger than a node", () => {
  const [, small] = build({ tp: 4, pp: 1, dp: 4 });
  match(small?.argv.join(" ") ?? "", /--data-parallel-size 4 --data-parallel-backend ray/);
  equal(small?.env["VLLM_RAY_DP_PACK_STRATEGY"], undefined);
  const [, large] = build({ tp: 16, pp: 1, dp: 2, shardCount: 4 });
  equal(large?.env["VLLM_RAY_DP_PACK_STRATEGY"], "span");
});

Deno.test("all of Ray's ports lie in the shard's block, each once", () => {
  for (const rank of [0, 1]) {
    const first = rank === 0 ? 20_000 : 20_512;
    const argv = build({ rank })[0]?.argv ?? [];
    const ports = argv.flatMap((arg, index) => /-port$/.test(arg) ? [Number(argv[index + 1])] : []);
    equal(new Set(ports).size, ports.length);
    ok(ports.length >= 8 && ports.every((port) => port >= first && port < first + 256));
  }
});

Deno.test("Ray is refused where its ports do not fit, and by an engine that has none", () => {
  const input = {
    spec: aSpec({ launchMode: "ray", portCount: 64 }),
    engine: { name: "vllm", path: "/opt/vllm/bin/vllm", version: "1" },
    address: "10.0.0.1",
    apiKey: KEY,
    modelDirs: [],
  };
  const small = vllm.build(input);
  match(small.kind === "refused" ? small.message : "", /64 ports: it needs 128/);
  const simulated = sim.build(input);
  equal(simulated.kind === "refused" && simulated.reason, "launch_mode_unsupported");
});

/** Runs what a shell is told to, with a program in the place of ray that counts its calls. */
async function runScript(
  argv: readonly string[],
  ray: string,
  python = "exit 1",
): Promise<Deno.CommandOutput> {
  const root = await Deno.makeTempDir();
  try {
    await Deno.writeTextFile(`${root}/ray`, `#!/bin/sh\n${ray}\n`, { mode: 0o755 });
    await Deno.writeTextFile(`${root}/vllm`, '#!/bin/sh\necho "served $*"\n', { mode: 0o755 });
    await Deno.writeTextFile(`${root}/python3`, `#!/bin/sh\n${python}\n`, { mode: 0o755 });
    await Deno.writeTextFile(`${root}/sleep`, "#!/bin/sh\n", { mode: 0o755 });
    const args = argv.slice(1).map((arg) => arg.replace("/opt/vllm/bin", root));
    return await new Deno.Command("/bin/sh", {
      args,
      clearEnv: true,
      env: { PATH: `${root}:/usr/bin:/bin`, HOME: root, ROOT: root },
    }).output();
  } finally {
    await Deno.remove(root, { recursive: true });
  }
}

Deno.test("the server starts when all GPUs have joined, and says what it waited for in vain", async () => {
  const [, server] = build({});
  const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
  const joins = 'echo x >>"$ROOT/asked"; echo " $(($(wc -l <"$ROOT/asked") * 8)).0/'.concat(
    '$(($(wc -l <"$ROOT/asked") * 8)).0 GPU"',
  );
  const started = await runScript(server?.argv ?? [], joins);
  equal(started.code, 0, text(started.stderr));
  match(text(started.stdout), /^served serve \/models\/llama --served-model-name chat/);
  const alone = await runScript(server?.argv ?? [], 'echo " 0.0/8.0 GPU"');
  equal(alone.code, 1);
  match(text(alone.stderr), /in vain for all GPUs to join Ray at 10\.0\.0\.1:20032/);
});

Deno.test("Ray's head keeps its sockets below the engine's HOME: units share no /tmp", async () => {
  const [head] = build({});
  const { stdout } = await runScript(head?.argv ?? [], 'echo "$*"');
  match(new TextDecoder().decode(stdout), /--block --temp-dir \/.*\/ray\n$/);
});

Deno.test("Ray's client has its port in the block where it is installed, and none elsewhere", async () => {
  const [head] = build({});
  const installed = await runScript(head?.argv ?? [], 'echo "$*"', "exit 0");
  match(
    new TextDecoder().decode(installed.stdout),
    /--block --ray-client-server-port 20039 --temp-dir/,
  );
  const minimal = await runScript(head?.argv ?? [], 'echo "$*"', "exit 1");
  equal(minimal.code, 0);
  ok(!new TextDecoder().decode(minimal.stdout).includes("client"));
});
