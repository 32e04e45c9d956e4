/**
 * Our flags against a real server's own help, where there is one: HEDDLE_TEST_LLAMA_SERVER names it
 * (`deno task llama` builds it and says so). Elsewhere this is reported as skipped.
 */
import { equal, ok } from "node:assert/strict";
import { aSpec } from "../core/shard/shard_fake.ts";
import { llamacpp } from "./llamacpp.ts";

const server = Deno.env.get("HEDDLE_TEST_LLAMA_SERVER");

Deno.test({
  name: "every flag and variable that llama.cpp is given occurs in the real server's --help",
  ignore: server === undefined,
  fn: async () => {
    const { code, stdout } = await new Deno.Command(server ?? "", { args: ["--help"] }).output();
    equal(code, 0);
    const help = new TextDecoder().decode(stdout);
    const built = llamacpp.build({
      spec: aSpec({
        engine: "llamacpp",
        source: "/models/m.gguf",
        gpus: [{ index: 0, uuid: "GPU-a" }],
      }),
      engine: { name: "llamacpp", path: server ?? "", version: "1" },
      address: "127.0.0.1",
      apiKey: "sk-heddle-replica-key",
      modelDirs: [],
    });
    ok(built.kind === "processes");
    const [process] = built.processes;
    const flags = process?.argv.filter((arg) => /^--?[a-z]/.test(arg)) ?? [];
    ok(flags.length >= 6, flags.join());
    for (const word of [...flags, ...Object.keys(process?.env ?? {})]) {
      // As a whole word: "-c" must not be found within "--ctx-size".
      ok(help.split(/[\s,()]+/).includes(word), `${word} is not in its help`);
    }
  },
});
