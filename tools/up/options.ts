/** The flags of `deno task up` and `deno task down`. */
import { parseArgs } from "node:util";
import { errorText, HeddleError } from "@heddle/proto/error";

/** Engines that `up` can start on this machine; all but "sim" serve a real model. */
const UP_ENGINES = ["sim", "llamacpp", "vllm", "sglang"] as const;
export type UpEngine = (typeof UP_ENGINES)[number];

/** What `up` was asked for; paths are as typed. */
export interface UpOptions {
  readonly detach: boolean;
  /** First of the ports to use; undefined uses Heddle's own. */
  readonly portsFrom: number | undefined;
  readonly state: string | undefined;
  readonly catalog: string | undefined;
  /** A release to run instead of the repository's sources. */
  readonly dist: string | undefined;
  readonly fleet: string | undefined;
  readonly engine: UpEngine;
  readonly model: string | undefined;
  /** The engine's program, where it is not on PATH. */
  readonly enginePath: string | undefined;
  readonly logFormat: "text" | "json";
  readonly help: boolean;
}

export const UP_HELP = `deno task up: control, a router and an agent on this machine, with an engine

  --detach               start in the background; deno task down stops it
  --ports-from N         use the ports from N on; N is the OpenAI endpoint
  --state DIR            keep everything in DIR (default .heddle/up, with --ports-from .heddle/up-N)
  --catalog FILE         models to serve (default examples/catalog.yaml)
  --fleet FILE           several agents with described hardware, see examples/fleet.yaml
  --engine llamacpp --model FILE.gguf
  --engine vllm|sglang --model DIR
                         serve a real model; --engine-path PROGRAM when it is not on PATH
  --dist DIR             run the release in DIR, as deno task build makes it, instead of the sources
  --log-format text|json form of the programs' logs (default json)
  --help                 print this
`;

export const DOWN_HELP = `deno task down: stop what deno task up started, engines too

  --ports-from N         the one that was started with --ports-from N
  --state DIR            the one that was started with --state DIR
`;

/** Reads the flags. Throws `invalid_input` naming the flag that is wrong. */
export function parseUpOptions(args: readonly string[]): UpOptions {
  const values = parse(args);
  const engine = UP_ENGINES.find((each) => each === (values.engine ?? "sim"));
  if (engine === undefined) {
    throw new HeddleError(
      "invalid_input",
      `Cannot use --engine ${values.engine}: want one of ${UP_ENGINES.join(", ")}`,
    );
  }
  if (engine === "sim") {
    const useless = (["model", "engine-path"] as const).find((flag) => values[flag] !== undefined);
    if (useless !== undefined) {
      throw new HeddleError(
        "invalid_input",
        `Cannot use --${useless}: it goes with --engine llamacpp, vllm or sglang`,
      );
    }
  } else {
    const model = engine === "llamacpp" ? "FILE.gguf" : "DIR";
    if (values.model === undefined) {
      throw new HeddleError(
        "invalid_input",
        `Cannot use --engine ${engine}: give --model ${model}`,
      );
    }
    if ((values.fleet ?? values.catalog) !== undefined) {
      throw new HeddleError(
        "invalid_input",
        `Cannot use --engine ${engine} with --fleet or --catalog: it makes its own catalog`,
      );
    }
  }
  const logFormat = values["log-format"] ?? "json";
  if (logFormat !== "text" && logFormat !== "json") {
    throw new HeddleError(
      "invalid_input",
      `Cannot use --log-format ${logFormat}: want text or json`,
    );
  }
  return {
    detach: values.detach ?? false,
    portsFrom: parsePort(values["ports-from"]),
    state: parseState(values.state),
    catalog: values.catalog,
    dist: values.dist,
    fleet: values.fleet,
    engine,
    model: values.model,
    enginePath: values["engine-path"],
    logFormat,
    help: values.help ?? false,
  };
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      allowPositionals: false,
      options: {
        detach: { type: "boolean" },
        "ports-from": { type: "string" },
        state: { type: "string" },
        catalog: { type: "string" },
        dist: { type: "string" },
        fleet: { type: "string" },
        engine: { type: "string" },
        model: { type: "string" },
        "engine-path": { type: "string" },
        "log-format": { type: "string" },
        help: { type: "boolean", short: "h" },
      },
    }).values;
  } catch (error) {
    throw new HeddleError("invalid_input", `${errorText(error).split(". ")[0]}. See --help`);
  }
}

// Empty, it would mean the current directory, as when a variable in a script is not set.
function parseState(text: string | undefined): string | undefined {
  if (text === "") throw new HeddleError("invalid_input", "Cannot use --state: it is empty");
  return text;
}

// The highest port used is some hundreds above the first.
const LAST_FIRST_PORT = 60_000;

function parsePort(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const port = Number(text);
  if (!Number.isInteger(port) || port < 1024 || port > LAST_FIRST_PORT) {
    throw new HeddleError(
      "invalid_input",
      `Cannot use --ports-from ${text}: want a number from 1024 to ${LAST_FIRST_PORT}`,
    );
  }
  return port;
}
