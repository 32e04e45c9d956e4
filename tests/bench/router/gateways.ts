/** What stands between the load and the engine: nothing, Heddle, or another gateway. */
import { fileURLToPath } from "node:url";
import type { Target } from "./client.ts";
import { type BenchProcess, freePort, startProcess } from "./process.ts";

const ROOT = fileURLToPath(new URL("../../..", import.meta.url)).replace(/\/$/, "");
const CHAT = "/v1/chat/completions";
const FLOOR = fileURLToPath(new URL("./floor.ts", import.meta.url));

/** Started in front of the engine at `enginePort`. */
export interface Gateway extends AsyncDisposable {
  readonly target: Target;
  /** Undefined where nothing is started. */
  readonly process: BenchProcess | undefined;
  /** Where Heddle tells its metrics. */
  readonly adminPort?: number;
}

type Start = (enginePort: number, folder: string) => Promise<Gateway>;

/** By name, in the order in which they are measured. */
export const GATEWAYS: Readonly<Record<string, Start>> = {
  direct: (enginePort) =>
    Promise.resolve({
      target: { port: enginePort, path: CHAT, headers: {} },
      process: undefined,
      async [Symbol.asyncDispose]() {},
    }),
  nginx,
  floor,
  heddle,
  portkey,
  litellm,
  "vllm-router": (enginePort) =>
    program("vllm-router", (port) => [
      ...["--host", "127.0.0.1", "--port", String(port), "--policy", "round_robin"],
      ...["--worker-urls", `http://127.0.0.1:${enginePort}`],
    ]),
  "sglang-router": (enginePort) =>
    program("sglang-router", (port) => [
      ...["launch", "--host", "127.0.0.1", "--port", String(port), "--policy", "round_robin"],
      ...["--worker-urls", `http://127.0.0.1:${enginePort}`],
    ]),
};

async function nginx(enginePort: number, folder: string): Promise<Gateway> {
  const port = freePort();
  const file = `${folder}/nginx.conf`;
  await Deno.writeTextFile(
    file,
    `daemon off; master_process off; pid ${folder}/nginx.pid; error_log ${folder}/error.log;
events { worker_connections 4096; }
http {
  access_log off; client_max_body_size 64m; client_body_buffer_size 1m;
  client_body_temp_path ${folder}/body; proxy_temp_path ${folder}/proxy;
  fastcgi_temp_path ${folder}/fcgi; uwsgi_temp_path ${folder}/uwsgi; scgi_temp_path ${folder}/scgi;
  upstream engine { server 127.0.0.1:${enginePort}; keepalive 128; }
  server {
    listen 127.0.0.1:${port};
    location / {
      proxy_pass http://engine; proxy_http_version 1.1; proxy_set_header Connection "";
      proxy_buffering off; keepalive_requests 1000000;
    }
  }
}
`,
  );
  return started(port, await startProcess({ command: "nginx", args: ["-c", file], port }));
}

async function floor(enginePort: number): Promise<Gateway> {
  const port = freePort();
  const args = ["run", "-P=test", "--quiet", "--no-prompt", FLOOR, `${port}`, `${enginePort}`];
  return started(port, await startProcess({ command: Deno.execPath(), args, port }));
}

/** From source, unless HEDDLE_ROUTER names an executable of a release. */
export async function heddle(enginePort: number, folder: string): Promise<Gateway> {
  const port = freePort();
  const adminPort = freePort();
  const file = `${folder}/router.yaml`;
  await Deno.writeTextFile(
    file,
    `listen: 127.0.0.1:${port}
admin: { listen: 127.0.0.1:${adminPort} }
state_directory: ${folder}
endpoints: [{ name: engine, url: "http://127.0.0.1:${enginePort}", models: [{ name: m }] }]
`,
  );
  const command = Deno.env.get("HEDDLE_ROUTER") ?? `${ROOT}/bin/heddle-router`;
  const env = { HEDDLE_DENO: Deno.execPath(), HEDDLE_STATE: folder };
  const process = await startProcess({ command, args: ["--config", file], env, port });
  return { ...started(port, process), adminPort };
}

/**
 * On Node; it chooses its upstream by headers. PORTKEY_SERVER names build/start-server.js of an
 * installed @portkey-ai/gateway: through npx a signal would end npx and leave the gateway.
 */
async function portkey(enginePort: number): Promise<Gateway> {
  const server = Deno.env.get("PORTKEY_SERVER");
  if (server === undefined) throw new Error("PORTKEY_SERVER does not say where it is installed");
  const port = freePort();
  const process = await startProcess({
    command: "node",
    args: [server, `--port=${port}`, "--headless"],
    port,
  });
  return started(port, process, {
    "x-portkey-provider": "openai",
    "x-portkey-custom-host": `http://127.0.0.1:${enginePort}/v1`,
    authorization: "Bearer none",
  });
}

/** It does not start without one. */
const LITELLM_KEY = "sk-bench-only";

async function litellm(enginePort: number, folder: string): Promise<Gateway> {
  const file = `${folder}/litellm.yaml`;
  await Deno.writeTextFile(
    file,
    `model_list:
  - model_name: m
    litellm_params: { model: openai/m, api_base: "http://127.0.0.1:${enginePort}/v1", api_key: none }
general_settings: { master_key: ${LITELLM_KEY} }
`,
  );
  return await program("litellm", (port) => [
    ...["--config", file, "--host", "127.0.0.1", "--port", String(port), "--num_workers", "1"],
  ], { authorization: `Bearer ${LITELLM_KEY}` });
}

async function program(
  command: string,
  args: (port: number) => readonly string[],
  headers: Readonly<Record<string, string>> = {},
): Promise<Gateway> {
  const port = freePort();
  const process = await startProcess({ command, args: args(port), port, readyMs: 180_000 });
  return started(port, process, headers);
}

function started(
  port: number,
  process: BenchProcess,
  headers: Readonly<Record<string, string>> = {},
): Gateway {
  return {
    target: { port, path: CHAT, headers },
    process,
    [Symbol.asyncDispose]: () => process[Symbol.asyncDispose](),
  };
}
