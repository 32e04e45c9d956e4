import { deepEqual, equal, ok } from "node:assert/strict";
import { join } from "node:path";
import { boundLog } from "./log_file.ts";
import { errorsFile, LogWatch } from "./log_watch.ts";

async function withLog(
  work: (log: string, open: () => LogWatch, root: string) => Promise<void>,
): Promise<void> {
  const root = await Deno.makeTempDir();
  const log = join(root, "log");
  const hide = (line: string) => line.replace("secret", "[hidden]");
  try {
    await work(log, () => new LogWatch({ log, errors: errorsFile(root) }, hide), root);
  } finally {
    await Deno.remove(root, { recursive: true });
  }
}

async function append(file: string, text: string): Promise<void> {
  await Deno.writeTextFile(file, text, { append: true });
}

Deno.test("LogWatch reads on where it was, and takes lines only when they are whole", async () => {
  await withLog(async (log, open) => {
    const watch = open();
    await watch.look();
    await append(log, "one\ntw");
    await watch.look();
    deepEqual(watch.digest.lastLines, ["one"]);
    await append(log, "o\nthree");
    await Promise.all([watch.look(), watch.look()]);
    deepEqual(watch.digest.lastLines, ["one", "two"]);
    await watch.end();
    deepEqual(watch.digest.lastLines, ["one", "two", "three"]);
  });
});

Deno.test("LogWatch goes on when the log was cut, and keeps the first errors beside it", async () => {
  await withLog(async (log, open, root) => {
    const watch = open();
    await append(log, "ValueError: secret root\n" + "x\n".repeat(500));
    await watch.look();
    ok(await boundLog(log, { bytesMax: 100 }));
    await append(log, "after\n");
    await watch.look();
    equal(watch.digest.lastLines.at(-1), "after");
    equal(watch.digest.unexplained, "ValueError: secret root");
    equal(await Deno.readTextFile(errorsFile(root)), "ValueError: [hidden] root\n");
  });
});

Deno.test("a flood is not read whole, and the next agent knows its first errors", async () => {
  await withLog(async (log, open) => {
    const first = open();
    await append(log, "torch.OutOfMemoryError: CUDA out of memory.\n");
    await first.look();
    await append(log, "noise ".repeat(100).concat("\n").repeat(8_000));
    await append(log, "last\n");
    const next = open();
    await next.look();
    equal(next.digest.findings[0]?.row.reason, "gpu_out_of_memory");
    equal(next.digest.lastLines.at(-1), "last");
    ok(next.digest.lineCount < 2_000, `${next.digest.lineCount} lines were read`);
  });
});
