import { equal, match } from "node:assert/strict";
import { HeddleError } from "@heddle/proto/error";
import { logger, redact, startLogging } from "./log.ts";

async function lines(format: "text" | "json", act: () => void): Promise<string[]> {
  const written: string[] = [];
  await startLogging({ format, level: "info", write: (line) => written.push(line) });
  act();
  return written;
}

Deno.test("logger() writes one JSON object a line with its properties", async () => {
  const [line] = await lines("json", () => logger("router").info("served", { requestId: "r-1" }));
  const record = JSON.parse(line ?? "");
  equal(record.logger, "router");
  equal(record.message, "served");
  equal(record.requestId, "r-1");
});

Deno.test("logger() lets no property take the place of the record's own members", async () => {
  const [line] = await lines("json", () => logger("x").info("real", { message: "m", level: "l" }));
  const record = JSON.parse(line ?? "");
  equal(record.message, "real");
  equal(record.level, "info");
  equal(record.message_, "m");
});

Deno.test("logger() hides secrets by name and by form, in every format", async () => {
  for (const format of ["text", "json"] as const) {
    const text = (await lines(format, () => {
      logger("agent").warning("key sk-heddle-abcdefghij used", {
        apiKey: "plain",
        nested: { hub_token: "hf_abcdefghijkl", header: "Bearer xyz123" },
        error: new HeddleError("protocol", "bad sk-heddle-zzzzzzzzzz", { cause: "Bearer abc" }),
      });
    })).join("");
    for (const secret of ["abcdefghij", "plain", "hf_abc", "xyz123", "zzzzzz", "Bearer abc"]) {
      equal(text.includes(secret), false, `${secret} in ${text}`);
    }
    match(text, /hidden/);
  }
});

Deno.test("logger() stays quiet below its level", async () => {
  equal((await lines("text", () => logger("x").debug("hush"))).length, 0);
});

Deno.test("redact() survives cycles", () => {
  const cycle: Record<string, unknown> = {};
  cycle["self"] = cycle;
  equal(typeof redact(cycle), "object");
});
