/** Which flags are Heddle's own, against the lists of the engines' own flags. */
import { deepEqual, equal, ok } from "node:assert/strict";
import { z } from "zod";
import { checkArgs } from "./owned_args.ts";

const LISTS = new URL("../../../tests/fixtures/engines/", import.meta.url);

/** The flag that an argument is refused as; undefined when it is accepted. */
function refusedAs(engine: "vllm" | "sglang" | "llamacpp" | "sim", arg: string) {
  const schema = z.array(z.string())
    .superRefine((args, context) => checkArgs(engine, args, context));
  return schema.safeParse([arg]).error?.issues[0]?.message.split(" ", 1)[0];
}

for (const { name } of Deno.readDirSync(LISTS)) {
  const [engine = "", version = ""] = name.replace(".txt", "").split("-");
  if (engine !== "vllm" && engine !== "sglang" && engine !== "llamacpp") continue;
  const flags = Deno.readTextFileSync(new URL(name, LISTS)).split("\n")
    .filter((line) => line.startsWith("-"));

  Deno.test(`no flag of ${engine} ${version} is refused for another that begins so`, () => {
    for (const flag of flags) ok([undefined, flag].includes(refusedAs(engine, flag)), flag);
  });

  if (engine === "llamacpp") continue;

  Deno.test(`no beginning that ${engine} ${version} takes for a flag of Heddle's is accepted`, () => {
    const owned = flags.filter((flag) => refusedAs(engine, flag) !== undefined);
    let tried = 0;
    for (const flag of owned) {
      for (let length = flag.startsWith("--") ? 3 : 2; length < flag.length; length++) {
        const beginning = flag.slice(0, length);
        const meant = flags.filter((each) => each.startsWith(beginning));
        if (meant.length > 1 || flags.includes(beginning)) continue;
        tried++;
        ok(refusedAs(engine, beginning) !== undefined, `${beginning} is ${flag}`);
      }
    }
    ok(tried > 100);
  });
}

Deno.test("sizes and devices that Heddle decides on are its own, and tuning within them is not", () => {
  for (
    const [engine, flags] of [
      ["vllm", [
        "--ho",
        "--te=2",
        "--pi",
        "--nn",
        "--ud",
        "-t",
        "--device-ids",
        "-pcp",
        "--port.x",
      ]],
      ["vllm", ["--prefill-context-parallel-size", "-dpm", "--P", "--shutdown-timeout=9"]],
      ["sglang", ["--ho", "--po", "--se", "--ap", "--da", "--attn-cp-size", "--moe_dp_size"]],
      ["sim", ["--te"]],
      ["llamacpp", ["--port", "-m"]],
    ] as const
  ) {
    for (const flag of flags) ok(refusedAs(engine, flag) !== undefined, `${engine} ${flag}`);
  }
  equal(refusedAs("vllm", "--decode-context-parallel-size"), undefined);
  deepEqual(["-", "--", "-1", "8192", "-O3"].map((arg) => refusedAs("vllm", arg)), [
    undefined,
    undefined,
    undefined,
    undefined,
    undefined,
  ]);
  equal(refusedAs("llamacpp", "-h"), undefined);
});
