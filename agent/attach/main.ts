/**
 * heddle-attach: what `heddle-agent attach` and `heddle-agent script` start. A program of its own, for
 * beside an engine on a machine of somebody else's it needs little of what the agent of a node may do.
 */
import { readAttachEnvironment } from "@heddle/common/attach/environment";
import { type ProgramFlags, runProgram } from "@heddle/common/program";
import { VERSION } from "@heddle/common/version";
import { errorText, HeddleError } from "@heddle/proto/error";
import {
  type Artifacts,
  attachScript,
  parseArtifact,
  SCRIPT_KINDS,
  type ScriptKind,
} from "../core/attach/script.ts";
import { type AttachSettings, attachSettings } from "../core/attach/settings.ts";
import { Membership } from "../edge/attach/membership.ts";
import { NvidiaSmi } from "../edge/hardware/nvidia_smi.ts";
import { attach } from "./attach.ts";

/** Where they usually are; the permission set names the same. */
const NVIDIA_SMI = ["/usr/bin/nvidia-smi", "/usr/lib/wsl/lib/nvidia-smi"] as const;
const DU = ["/usr/bin/du", "/bin/du"] as const;

await runProgram({
  name: "heddle-attach",
  purpose: "tells control of an engine that something else started, and holds its lease",
  flags: {
    script: `print the shell script of this kind: ${SCRIPT_KINDS.join(", ")}`,
    x64: "with --script: URL#sha256=HEX of this program for x86-64",
    arm64: "with --script: URL#sha256=HEX of this program for 64-bit ARM",
  },
  commands: {
    attach: {
      usage: "",
      purpose: "attach the engine that the environment names; see docs/attach.md",
      flags: (rest) => rest,
    },
    script: {
      usage: `${SCRIPT_KINDS.join("|")} [--x64 URL#sha256=HEX] [--arm64 URL#sha256=HEX]`,
      purpose: "print the shell script that fetches this program and starts it beside an engine",
      flags: ([kind = "", ...rest]) => ["--script", kind, ...rest],
    },
  },
  checkConfig: () => {
    throw new HeddleError("invalid_input", "It has no file: it is told by its environment");
  },
  run: main,
});

async function main(flags: ProgramFlags, stop: AbortSignal): Promise<void> {
  const { script } = flags.extra;
  if (script !== undefined) return printScript(script, flags);
  const settings = attachSettings(readAttachEnvironment((name) => Deno.env.get(name)));
  const control = new Membership({
    urls: settings.controlUrls,
    token: await tokenOf(settings),
    now: Date.now,
  });
  const named = Deno.env.get("HEDDLE_NVIDIA_SMI")?.split(",").filter((path) => path !== "");
  await attach({
    settings,
    control,
    nvidiaSmi: (named ?? NVIDIA_SMI).map((path) => new NvidiaSmi(path)),
    du: DU,
    env: {
      hubCache: Deno.env.get("HF_HUB_CACHE"),
      hfHome: Deno.env.get("HF_HOME"),
      home: Deno.env.get("HOME"),
    },
    now: () => performance.now(),
    signal: stop,
  });
}

async function tokenOf(
  { joinToken, joinTokenFile }: AttachSettings,
): Promise<string | undefined> {
  if (joinToken !== undefined || joinTokenFile === undefined) return joinToken;
  try {
    return (await Deno.readTextFile(joinTokenFile)).trim();
  } catch (error) {
    const text = `Cannot read ${joinTokenFile}: ${errorText(error)}`;
    throw new HeddleError("invalid_input", text, { cause: error });
  }
}

function printScript(word: string, { extra }: ProgramFlags): void {
  const kind = SCRIPT_KINDS.find((each): each is ScriptKind => each === word);
  if (kind === undefined) {
    throw new HeddleError(
      "invalid_input",
      `Cannot print script "${word}": want ${SCRIPT_KINDS.join(", ")}`,
    );
  }
  const artifacts: Artifacts = {
    ...(extra["x64"] === undefined ? {} : { x64: parseArtifact(extra["x64"]) }),
    ...(extra["arm64"] === undefined ? {} : { arm64: parseArtifact(extra["arm64"]) }),
  };
  if (Object.keys(artifacts).length === 0) {
    write(
      Deno.stderr,
      `heddle-attach: no build of ${VERSION} was published, so the script names none: give --x64 or ` +
        "--arm64, or set HEDDLE_AGENT_BINARY_URL where it runs\n",
    );
  }
  write(Deno.stdout, attachScript(kind, VERSION, artifacts));
}

function write(to: { writeSync(bytes: Uint8Array): number }, text: string): void {
  for (let bytes = new TextEncoder().encode(text); bytes.length > 0;) {
    bytes = bytes.subarray(to.writeSync(bytes));
  }
}
