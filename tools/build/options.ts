/** The flags of `deno task build`. */
import { isAbsolute, resolve } from "node:path";
import { parseArgs } from "node:util";
import { VERSION } from "@heddle/common/version";
import { errorText, HeddleError } from "@heddle/proto/error";
import type { Arch } from "./runtime.ts";

export interface BuildOptions {
  /** Absolute path of the release to write. */
  readonly out: string;
  readonly arch: Arch;
  readonly form: "bundle" | "compile" | "attach";
  /** Where executables will be installed. */
  readonly prefix: string;
  /** The one folder that executables may read and write; undefined leaves what the sets say. */
  readonly state: string | undefined;
  readonly help: boolean;
}

export const BUILD_HELP =
  `deno task build: a release, ready to be copied to /opt/heddle/releases/${VERSION}

  --out DIR        where to (default dist)
  --arch ARCH      machines that it is for, x86_64 or arm64 (default: like this one)
  --compile        single-file executables instead of bundles beside a runtime; what they may do is
                   fixed when they are built:
  --prefix DIR       with --compile: where they will be (default /opt/heddle/releases/${VERSION})
  --state DIR        with --compile: the one folder they read and write, to try them elsewhere
  --attach         one file for rented boxes instead of a release, see docs/attach.md; the folder of
                   --out (default dist-attach) holds it beside those for other machines
  --help           print this
`;

const ARCHS: ReadonlyMap<string, Arch> = new Map([
  ["x86_64", "x86_64"],
  ["x86-64", "x86_64"],
  ["x64", "x86_64"],
  ["amd64", "x86_64"],
  ["aarch64", "aarch64"],
  ["arm64", "aarch64"],
]);

/** Reads the flags. `own` is this machine's architecture. Throws `invalid_input`. */
export function parseBuildOptions(
  args: readonly string[],
  place: { root: string; own: string },
): BuildOptions {
  const values = parse(args);
  const name = values.arch ?? place.own;
  const arch = ARCHS.get(name);
  if (arch === undefined) {
    throw new HeddleError("invalid_input", `Cannot use --arch ${name}: want x86_64 or arm64`);
  }
  if (values.attach && values.compile) {
    throw new HeddleError("invalid_input", "Cannot use --attach with --compile: want one of them");
  }
  for (const flag of ["prefix", "state"] as const) {
    const given = values[flag];
    if (given === undefined) continue;
    if (!values.compile) {
      throw new HeddleError("invalid_input", `Cannot use --${flag}: it goes with --compile`);
    }
    if (!isAbsolute(given) || given.includes(",")) {
      throw new HeddleError(
        "invalid_input",
        `Cannot use --${flag} ${given}: want an absolute path without a comma`,
      );
    }
  }
  return {
    out: resolve(place.root, values.out ?? (values.attach ? "dist-attach" : "dist")),
    arch,
    form: values.attach ? "attach" : values.compile ? "compile" : "bundle",
    prefix: resolve(values.prefix ?? `/opt/heddle/releases/${VERSION}`),
    state: values.state === undefined ? undefined : resolve(values.state),
    help: values.help ?? false,
  };
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      allowPositionals: false,
      options: {
        out: { type: "string" },
        arch: { type: "string" },
        compile: { type: "boolean", default: false },
        attach: { type: "boolean", default: false },
        prefix: { type: "string" },
        state: { type: "string" },
        help: { type: "boolean", short: "h" },
      },
    }).values;
  } catch (error) {
    throw new HeddleError("invalid_input", `${errorText(error).split(". ")[0]}. See --help`);
  }
}
