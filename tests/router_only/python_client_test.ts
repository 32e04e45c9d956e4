/** The official OpenAI client for Python against a router in front of a simulated engine. */
import { deepEqual, equal } from "node:assert/strict";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { say } from "../../tools/say.ts";
import { openPython } from "../python_environment.ts";
import { eventually, freePorts, metricOf, startRouter, startSim } from "./processes.ts";

const SCRIPT = fileURLToPath(new URL("python_client.py", import.meta.url));
const python = await openPython({
  pythons: ["python3.12", "python3.11", "python3.13", "python3.10", "python3.9"],
  packages: ["openai==3.57.0"],
});
if ("why" in python) say(`Skipped: no OpenAI client for Python: ${python.why}`);

Deno.test({
  name: "the official Python client works against a router",
  ignore: "why" in python,
  async fn() {
    if ("why" in python) return;
    const state = await Deno.makeTempDir();
    try {
      const [port = 0] = freePorts(1);
      await using engine = await startSim({ port, args: ["--sim-overhead-ms", "0"] });
      await using router = await startRouter(state, {
        endpoints: [{
          name: "box",
          url: engine.url,
          models: [{ name: "demo", served_name: "served" }],
        }],
      });
      const { stdout, stderr, code } = await new Deno.Command(join(python.bin, "python"), {
        args: [SCRIPT, `${router.url}/v1`],
        stdin: "null",
      }).output();
      equal(code, 0, new TextDecoder().decode(stderr));
      deepEqual(JSON.parse(new TextDecoder().decode(stdout)), {
        models: ["demo"],
        completion_tokens: 16,
        streamed_equals_whole: true,
        usage_only_when_asked: [0, 1],
        tool: "weather",
        embedding_lengths_equal: true,
        unknown_model: ["NotFoundError", "model_not_found"],
        async_streams: 8,
        response_tokens: 20,
      });
      await eventually(
        "the engine is free after a stream that was left",
        async () => await metricOf(engine.url, "vllm:num_requests_running") === 0 || undefined,
        1_000,
      );
    } finally {
      await Deno.remove(state, { recursive: true });
    }
  },
});
