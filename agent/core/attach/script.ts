/**
 * The /bin/sh that brings the agent to a rented box: it fetches one file, checks it, and starts it
 * beside the engine. Three forms, for who starts whom. It may be read by dash, and nothing of it may
 * cost the engine anything.
 */
import {
  ATTACH_ENVIRONMENT as ENV,
  ATTACH_SCRIPT_ENVIRONMENT as SCRIPT,
} from "@heddle/common/attach/environment";
import { HeddleError } from "@heddle/proto/error";

export const SCRIPT_KINDS = ["wrapper", "sidecar", "prelude"] as const;
export type ScriptKind = (typeof SCRIPT_KINDS)[number];

/** Where a build for one kind of machine was published. */
export interface Artifact {
  readonly url: string;
  /** Of the file, lower-case hexadecimal. */
  readonly sha256: string;
}

/** By what Deno and releases call the machine. */
export type Artifacts = Readonly<Partial<Record<"x64" | "arm64", Artifact>>>;

/** Reads "https://…#sha256=<64 digits>". Throws `invalid_input`. */
export function parseArtifact(text: string): Artifact {
  const [, url = "", sha256 = ""] = /^([^#\s']+)#sha256=([0-9a-fA-F]{64})$/.exec(text) ?? [];
  if (url !== "") return { url, sha256: sha256.toLowerCase() };
  throw new HeddleError(
    "invalid_input",
    `Cannot use "${text}" as a build: want its URL with its checksum, URL#sha256=HEX`,
  );
}

/** The script. Without artifacts it says that there are none, and needs the override. */
export function attachScript(kind: ScriptKind, version: string, artifacts: Artifacts): string {
  return [...head(kind, version), ...fetching(version, artifacts), ...BODY[kind], ""].join("\n");
}

const WHAT: Readonly<Record<ScriptKind, readonly string[]>> = {
  wrapper: [
    "# Put it in front of an engine's own command line: sh wrapper.sh vllm serve … The engine starts at",
    "# once and takes the place of this shell; the agent is fetched and runs beside it.",
  ],
  sidecar: [
    "# Runs the agent in the foreground, as a container of its own beside the engine's. It fails",
    "# loudly: whoever started it is to see that.",
  ],
  prelude: [
    "# Ends at once, and fetches and runs the agent in the background: for a start-up hook, or in front",
    "# of an engine in a script of one's own. What goes wrong is said, and costs nobody anything.",
  ],
};

function head(kind: ScriptKind, version: string): readonly string[] {
  return [
    "#!/bin/sh",
    `# Heddle ${version}: ${kind}. Written by: heddle-agent script ${kind}`,
    ...WHAT[kind],
    "# What it is told, by its environment:",
    ...[...Object.values(ENV), ...Object.values(SCRIPT)].map(({ name, meaning }) =>
      `#   ${name.padEnd(26)} ${meaning}`
    ),
    "",
  ];
}

function fetching(version: string, artifacts: Artifacts): readonly string[] {
  const of = (arch: "x64" | "arm64") => artifacts[arch] ?? { url: "", sha256: "" };
  return [
    `heddle_version=${quoted(version)}`,
    `heddle_x64_url=${quoted(of("x64").url)}`,
    `heddle_x64_sha256=${quoted(of("x64").sha256)}`,
    `heddle_arm64_url=${quoted(of("arm64").url)}`,
    `heddle_arm64_sha256=${quoted(of("arm64").sha256)}`,
    "",
    FETCH,
  ];
}

/** One word of a shell's command line. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

const FETCH = `heddle_say() { printf 'heddle: %s\\n' "$*" >&2; }

# Sets heddle_agent to the file, checked; says why not and fails otherwise.
heddle_fetch() {
  case "$(uname -m)" in
    x86_64 | amd64) heddle_arch=x64 heddle_url=$heddle_x64_url heddle_sum=$heddle_x64_sha256 ;;
    aarch64 | arm64) heddle_arch=arm64 heddle_url=$heddle_arm64_url heddle_sum=$heddle_arm64_sha256 ;;
    *)
      heddle_say "there is no agent for this machine: $(uname -m)"
      return 1
      ;;
  esac
  if [ -n "\${${SCRIPT.binaryUrl.name}:-}" ]; then
    heddle_url=$${SCRIPT.binaryUrl.name}
    heddle_sum=\${${SCRIPT.binarySha256.name}:-$heddle_sum}
  fi
  if [ -z "$heddle_url" ]; then
    heddle_say "no build of Heddle $heddle_version for $heddle_arch was published: set ${SCRIPT.binaryUrl.name} and ${SCRIPT.binarySha256.name}"
    return 1
  fi
  if [ -z "$heddle_sum" ]; then
    heddle_say "there is no checksum for $heddle_url: set ${SCRIPT.binarySha256.name}"
    return 1
  fi
  heddle_dir=$(mktemp -d "\${TMPDIR:-/tmp}/heddle-agent.XXXXXX") || {
    heddle_say "cannot make a folder in \${TMPDIR:-/tmp}"
    return 1
  }
  heddle_agent=$heddle_dir/heddle-agent
  heddle_download "$heddle_url" "$heddle_agent" && heddle_check && return 0
  rm -rf "$heddle_dir"
  return 1
}

heddle_download() {
  if command -v curl >/dev/null 2>&1; then
    curl --fail --silent --show-error --location --connect-timeout 20 --max-time 600 \\
      --retry 3 --output "$2" -- "$1" >&2 &
  elif command -v wget >/dev/null 2>&1; then
    wget -q -T 60 -O "$2" "$1" >&2 &
  else
    heddle_say "there is neither curl nor wget to fetch $1"
    return 1
  fi
  # Beside this shell, so that whoever ends the shell can end it too.
  heddle_job=$!
  wait "$heddle_job" && return 0
  heddle_say "cannot fetch $1"
  return 1
}

heddle_check() {
  if command -v sha256sum >/dev/null 2>&1; then
    heddle_found=$(sha256sum "$heddle_agent")
  elif command -v shasum >/dev/null 2>&1; then
    heddle_found=$(shasum -a 256 "$heddle_agent")
  else
    heddle_say "there is no sha256sum to check $heddle_url"
    return 1
  fi
  heddle_found=\${heddle_found%% *}
  heddle_found=\${heddle_found#\\\\}
  heddle_sum=$(printf '%s' "$heddle_sum" | tr 'A-F' 'a-f')
  if [ "$heddle_found" != "$heddle_sum" ]; then
    heddle_say "$heddle_url is not what it should be: its SHA-256 is $heddle_found, want $heddle_sum"
    return 1
  fi
  chmod 700 "$heddle_agent"
}
`;

// The agent ends with the engine: the shell's pid is the engine's once it was replaced. Two forks, so
// that whoever the engine is need not wait for children that it does not know.
const WRAPPER = `if [ $# -eq 0 ]; then
  heddle_say "there is no engine to start: put its command line behind this script"
  exit 2
fi
heddle_engine=$$
(
  (
    trap '' HUP
    (
      trap 'kill "$heddle_job" && wait "$heddle_job"; rm -rf "$heddle_dir"; exit 0' TERM
      heddle_job= heddle_dir=
      heddle_fetch || {
        heddle_say "the engine runs without Heddle"
        exit 0
      }
      "$heddle_agent" attach &
      heddle_job=$!
      wait "$heddle_job"
      rm -rf "$heddle_dir"
    ) &
    heddle_pid=$!
    while kill -0 "$heddle_engine" && kill -0 "$heddle_pid"; do sleep 1; done 2>/dev/null
    kill "$heddle_pid" 2>/dev/null
    wait "$heddle_pid"
  ) </dev/null >&2 &
)
# It is the agent's, which has it by now.
unset ${ENV.joinToken.name}
exec "$@"`;

const SIDECAR = `heddle_fetch || exit 1
exec "$heddle_agent" attach`;

// Whoever starts an engine after it waits for no download, and does not stop for one that failed.
const PRELUDE = `(
  trap '' HUP
  (
    heddle_fetch || {
      heddle_say "nothing of Heddle runs here"
      exit 0
    }
    exec "$heddle_agent" attach
  ) </dev/null >&2 &
)`;

const BODY: Readonly<Record<ScriptKind, readonly string[]>> = {
  wrapper: [WRAPPER],
  sidecar: [SIDECAR],
  prelude: [PRELUDE],
};
