/**
 * heddle-attach as one file that anybody's machine can run: a shell script with an archive behind it
 * of the launcher, the bundle and the runtime. It is what the scripts for rented boxes fetch. Built
 * from the same sources it holds the same bytes.
 */
import { createHash } from "node:crypto";
import { gzipSync } from "node:zlib";
import { VERSION } from "@heddle/common/version";
import { HeddleError } from "@heddle/proto/error";
import { ROOT } from "../repository.ts";
import { writeBundles } from "./bundle.ts";
import { launcherText } from "./launcher.ts";
import type { BuildOptions } from "./options.ts";
import { readGrants } from "./permission_set.ts";
import { PROGRAMS } from "./program.ts";
import { type Arch, demandPinnedDeno, findRuntime } from "./runtime.ts";
import { sha256File, writeSums } from "./sums.ts";
import { tarOf } from "./tar.ts";

const PROGRAM = "heddle-attach";

/** Of the archive's checksum, to tell one build from the next. */
const BUILD_CHARS = 12;

/** As the scripts for rented boxes call machines. */
const NAMES: Readonly<Record<Arch, string>> = { x86_64: "x64", aarch64: "arm64" };

export interface AttachFile {
  /** Its name in the folder that was asked for. */
  readonly name: string;
  readonly sha256: string;
}

/** Writes the file, and the checksums of all that lie there with it, into `options.out`. */
export async function writeAttachFile({ out, arch }: BuildOptions): Promise<AttachFile> {
  demandPinnedDeno();
  await demandOwn(out);
  const folder = await Deno.makeTempDir({ dir: out, prefix: ".heddle-build-" });
  try {
    await writeBundles(folder);
    const config = await Deno.readTextFile(`${ROOT}/deno.json`);
    const [launcher = ""] = PROGRAMS.filter(({ name }) => name === PROGRAM)
      .map((program) => launcherText(program, readGrants(config, program.room), "release"));
    const archive = tarOf([
      { path: "LICENSE", mode: 0o644, bytes: await Deno.readFile(`${ROOT}/LICENSE`) },
      { path: `bin/${PROGRAM}`, mode: 0o755, bytes: new TextEncoder().encode(launcher) },
      {
        path: `lib/${PROGRAM}.mjs`,
        mode: 0o644,
        bytes: await Deno.readFile(`${folder}/lib/${PROGRAM}.mjs`),
      },
      { path: "runtime/deno", mode: 0o755, bytes: await Deno.readFile(await findRuntime(arch)) },
    ]);
    const name = `${PROGRAM}-${VERSION}-${NAMES[arch]}`;
    const made = `${folder}/${name}`;
    await Deno.writeFile(
      made,
      joined(new TextEncoder().encode(headOf(archive)), gzipSync(archive)),
    );
    await Deno.chmod(made, 0o755);
    await Deno.rename(made, `${out}/${name}`);
    await Deno.remove(folder, { recursive: true });
    await writeSums(out);
    return { name, sha256: await sha256File(`${out}/${name}`) };
  } catch (error) {
    await Deno.remove(folder, { recursive: true }).catch(() => {});
    throw error;
  }
}

// Checksums are written over all that is there: only of files that were made like this one.
async function demandOwn(out: string): Promise<void> {
  await Deno.mkdir(out, { recursive: true });
  const own = new RegExp(`^(?:${PROGRAM}-[\\w.+-]+|SHA256SUMS|\\.heddle-build-.*)$`);
  const other = [...Deno.readDirSync(out)].find(({ name }) => !own.test(name));
  if (other === undefined) return;
  throw new HeddleError(
    "invalid_input",
    `Cannot write to ${out}: it holds ${other.name}, and wants to hold nothing but ${PROGRAM}. ` +
      "Use --out DIR",
  );
}

function joined(...parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

const LINES = [
  "#!/bin/sh",
  `# ${PROGRAM} ${VERSION}. Behind these lines lies an archive of its parts, unpacked beside this file once.`,
  "say() { printf 'heddle-attach: %s\\n' \"$*\" >&2; }",
  'self=$(readlink -f "$0") && [ -r "$self" ] || { say "cannot find itself: $0"; exit 1; }',
  "parts=$self.BUILD.parts",
  'if [ ! -x "$parts/runtime/deno" ]; then',
  "  umask 077",
  "  # Where nothing can be written beside it, as in an image, it goes where temporary files do.",
  '  new=$(mktemp -d "$parts.XXXXXX" 2>/dev/null) || {',
  '    new=$(mktemp -d "${TMPDIR:-/tmp}/heddle-attach.XXXXXX") || exit 1',
  "    parts=$new",
  "  }",
  '  tail -n +LINE "$self" | tar -xzf - -C "$new" || {',
  '    say "cannot unpack itself into $new: want tar and gzip, and 110 MB of room"',
  '    rm -rf "$new"',
  "    exit 1",
  "  }",
  "  # Of two that start at once, one is first.",
  '  [ "$new" = "$parts" ] || mv -T "$new" "$parts" 2>/dev/null || parts=$new',
  "fi",
  `exec "$parts/bin/${PROGRAM}" "$@"`,
  "exit 1 # What follows is no script.",
];

/** The script. Its parts lie under a name of their own for each build: another file may come in its place. */
function headOf(archive: Uint8Array): string {
  const build = createHash("sha256").update(archive).digest("hex").slice(0, BUILD_CHARS);
  return `${LINES.join("\n")}\n`.replace("LINE", String(LINES.length + 1)).replace("BUILD", build);
}
