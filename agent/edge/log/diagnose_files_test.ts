import { equal, match, rejects } from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { join } from "node:path";
import { diagnoseFiles } from "./diagnose_files.ts";

const AGENT = fileURLToPath(new URL("../../../bin/heddle-agent", import.meta.url));

Deno.test("diagnoseFiles() reads the logs of several ranks, and hides secrets", async () => {
  const root = await Deno.makeTempDir();
  try {
    const [head, worker] = [join(root, "head.log"), join(root, "worker.log")];
    await Deno.writeTextFile(
      head,
      `INFO 09-12 08:00:00 [a.py:1] up
ERROR 09-12 08:10:00 [a.py:1] DistStoreError: Timed out after 601 seconds. 1/2 clients joined.`,
    );
    await Deno.writeTextFile(
      worker,
      "ERROR 09-12 08:00:01 [a.py:1] ValueError: Repo id must be 'a/b': token=hf_abcdefghijklm\n",
    );
    const text = await diagnoseFiles([head, worker]);
    match(text, /^Reason: {3}model_path_wrong$/m);
    match(text, /^Said by: {2}worker\.log, line 1$/m);
    match(text, /First errors of head\.log:/);
    match(text, /Read: head\.log \(2 lines\), worker\.log \(1 lines\)/);
    equal(text.includes("hf_abcdefghijklm"), false);
    await rejects(diagnoseFiles([join(root, "none.log")]), /there is no such file/);
  } finally {
    await Deno.remove(root, { recursive: true });
  }
});

Deno.test("heddle-agent --diagnose - reads a log that the agent itself may not", async () => {
  const process = new Deno.Command(AGENT, {
    args: ["--diagnose", "-"],
    stdin: "piped",
    stdout: "piped",
    stderr: "piped",
    env: { HEDDLE_DENO: Deno.execPath() },
  }).spawn();
  const writer = process.stdin.getWriter();
  await writer.write(
    new TextEncoder().encode("RuntimeError: Error 802: system not yet initialized"),
  );
  await writer.close();
  const { code, stdout, stderr } = await process.output();
  equal(code, 0, new TextDecoder().decode(stderr));
  match(new TextDecoder().decode(stdout), /Reason: {3}fabric_manager_down/);
});
