/** `heddle-agent --diagnose`: why an engine failed, from logs of anywhere. */
import { basename } from "node:path";
import { HeddleError } from "@heddle/proto/error";
import { diagnose, type ProcessLog } from "../../core/diagnosis/diagnose.ts";
import { LogDigest } from "../../core/diagnosis/log_digest.ts";
import { diagnosisReport } from "../../core/diagnosis/report.ts";
import { redactLine } from "../../core/redact_line.ts";

/** Without a newline for this long, what was read so far counts as a line. */
const LINE_LENGTH_MAX = 1024 * 1024;

/**
 * Reads the logs, one for each process or rank, "-" being standard input, and says what they say.
 * Throws `invalid_input` for a file that cannot be read.
 */
export async function diagnoseFiles(paths: readonly string[]): Promise<string> {
  const logs: ProcessLog[] = [];
  for (const path of paths) {
    const digest = new LogDigest();
    for await (const line of linesOf(await open(path))) digest.push(line);
    logs.push({ process: path === "-" ? "standard input" : basename(path), digest });
  }
  return diagnosisReport(diagnose(logs, {}), logs, (line) => redactLine(line, []));
}

async function open(path: string): Promise<ReadableStream<Uint8Array>> {
  if (path === "-") return Deno.stdin.readable;
  try {
    return (await Deno.open(path)).readable;
  } catch (error) {
    const why = error instanceof Deno.errors.NotCapable
      ? "the agent may not read there; let the shell do it: heddle-agent diagnose - < FILE"
      : error instanceof Deno.errors.NotFound
      ? "there is no such file"
      : error instanceof Error
      ? error.message
      : String(error);
    throw new HeddleError("invalid_input", `Cannot read ${path}: ${why}`, { cause: error });
  }
}

async function* linesOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const bytes of stream) {
    const lines = (rest + decoder.decode(bytes, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    if (rest.length > LINE_LENGTH_MAX) lines.push(rest.slice(0, LINE_LENGTH_MAX));
    if (rest.length > LINE_LENGTH_MAX) rest = "";
    yield* lines;
  }
  if (rest !== "") yield rest;
}
