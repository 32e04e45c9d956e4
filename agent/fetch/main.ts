/**
 * heddle-fetch: fetches, looks at, or removes weights, once, as its one request says, and reports in
 * lines on standard output. The agent starts it as a unit of its own, so that it outlives the agent,
 * cannot block it, and alone sees the token.
 */
import { runProgram } from "@heddle/common/program";
import { errorText, HeddleError } from "@heddle/proto/error";
import {
  decodeRequest,
  encodeReport,
  type FetchReport,
  type FetchRequest,
} from "../core/weights/documents.ts";
import { WeightsError } from "../core/weights/failure.ts";
import { fetchWeights } from "../edge/fetch/fetch_weights.ts";
import { inspectSource } from "../edge/fetch/inspect_source.ts";
import { honourNoProxy } from "../edge/fetch/net/proxies.ts";
import { Progress } from "../edge/fetch/progress.ts";
import { emptyTrash, removeWeights } from "../edge/fetch/remove_weights.ts";

const REQUEST = "HEDDLE_FETCH_REQUEST";

await runProgram({
  name: "heddle-fetch",
  purpose: `fetches weights; the agent starts it, with its request in ${REQUEST}`,
  checkConfig: async (file) => read(await Deno.readTextFile(file)),
  run: main,
});

async function main(
  flags: { readonly config: string | undefined },
  stop: AbortSignal,
): Promise<void> {
  const text = flags.config === undefined
    ? Deno.env.get(REQUEST)
    : await Deno.readTextFile(flags.config);
  if (text === undefined) {
    throw new HeddleError("invalid_input", `Cannot fetch: there is no request in ${REQUEST}`);
  }
  const request = read(text);
  honourNoProxy(Deno.env);
  using progress = new Progress(say);
  let last: FetchReport;
  try {
    last = await obey(request, progress, stop);
  } catch (error) {
    last = failure(error, stop);
  }
  progress[Symbol.dispose]();
  say(last);
  if (last.kind === "failed") throw new HeddleError("failed_precondition", last.message);
}

async function obey(
  request: FetchRequest,
  progress: Progress,
  stop: AbortSignal,
): Promise<FetchReport> {
  switch (request.verb) {
    case "fetch":
      await emptyTrash(request.into);
      return await fetchWeights(request, progress, stop);
    case "inspect":
      return await inspectSource(request, progress, stop);
    case "remove":
      return await removeWeights(request);
    default:
      return request.verb satisfies never;
  }
}

function failure(error: unknown, stop: AbortSignal): FetchReport {
  if (error instanceof WeightsError) {
    return { kind: "failed", reason: error.reason, message: error.message };
  }
  const reason = stop.aborted ? "cancelled" : "system_error";
  return {
    kind: "failed",
    reason,
    message: stop.aborted ? "It was told to end" : errorText(error),
  };
}

function read(text: string): FetchRequest {
  try {
    return decodeRequest(text);
  } catch (error) {
    throw new HeddleError("invalid_input", `Cannot read the request: ${errorText(error)}`);
  }
}

function say(report: FetchReport): void {
  const bytes = new TextEncoder().encode(encodeReport(report));
  for (let rest = bytes; rest.length > 0;) rest = rest.subarray(Deno.stdout.writeSync(rest));
}
