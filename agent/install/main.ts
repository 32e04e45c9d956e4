/**
 * heddle-install: installs one engine at one version, once, as its request says, and reports in lines
 * on standard output. The agent starts it as a unit of its own.
 */
import { runProgram } from "@heddle/common/program";
import { errorText, HeddleError } from "@heddle/proto/error";
import {
  decodeInstallRequest,
  InstallError,
  type InstallReport,
  type InstallRequest,
} from "../core/install/install_documents.ts";
import { honourNoProxy, proxyVariables } from "../edge/fetch/net/proxies.ts";
import { clearLeftovers } from "../edge/install/clear_leftovers.ts";
import { installArchive } from "../edge/install/install_archive.ts";
import { installVenv } from "../edge/install/install_venv.ts";
import { removeEngine } from "../edge/install/remove_engine.ts";

const REQUEST = "HEDDLE_INSTALL_REQUEST";
const RETRY_MS = 1_000;

await runProgram({
  name: "heddle-install",
  purpose: `installs an engine; the agent starts it, with its request in ${REQUEST}`,
  checkConfig: async (file) => read(await Deno.readTextFile(file)),
  run: async (flags, stop) => {
    honourNoProxy(Deno.env);
    const text = flags.config === undefined
      ? Deno.env.get(REQUEST)
      : await Deno.readTextFile(flags.config);
    if (text === undefined) {
      throw new HeddleError("invalid_input", `Cannot install: there is no request in ${REQUEST}`);
    }
    const last = await obey(read(text), stop);
    say(last);
    if (last.kind === "failed") throw new HeddleError("failed_precondition", last.message);
  },
});

async function obey(request: InstallRequest, stop: AbortSignal): Promise<InstallReport> {
  const how = {
    say: (words: string) => say({ kind: "progress", words }),
    signal: stop,
    retryMs: RETRY_MS,
  };
  await clearLeftovers(request.into);
  try {
    if (request.verb === "remove") return await removeEngine(request);
    return request.releases === ""
      ? await installVenv(request, { ...how, proxies: proxyVariables(Deno.env) })
      : await installArchive(request, how);
  } catch (error) {
    return error instanceof InstallError
      ? { kind: "failed", reason: error.reason, message: error.message }
      : { kind: "failed", reason: "system_error", message: errorText(error) };
  }
}

function read(text: string): InstallRequest {
  try {
    return decodeInstallRequest(text);
  } catch (error) {
    throw new HeddleError("invalid_input", `Cannot read the request: ${errorText(error)}`);
  }
}

function say(report: InstallReport): void {
  const bytes = new TextEncoder().encode(`${JSON.stringify(report)}\n`);
  for (let rest = bytes; rest.length > 0;) rest = rest.subarray(Deno.stdout.writeSync(rest));
}
