/** The Deno that a release brings along: one version, known by its bytes, whoever builds. */
import { homedir } from "node:os";
import { HeddleError } from "@heddle/proto/error";
import { execute } from "./command.ts";
import { sha256File } from "./sums.ts";

export const DENO_VERSION = "2.9.6";

/** As `uname -m` says it. */
export type Arch = "x86_64" | "aarch64";

interface Runtime {
  /** The npm package that brings it. */
  readonly source: string;
  /** Deno's name for the machines that it runs on. */
  readonly target: string;
  readonly sha256: string;
}

const RUNTIMES: Readonly<Record<Arch, Runtime>> = {
  x86_64: {
    source: "@deno/linux-x64-glibc",
    target: "x86_64-unknown-linux-gnu",
    sha256: "bceb5b6a6239b0b010418406d8c77a508f67cf4337d94288f1c19fe71304aab0",
  },
  aarch64: {
    source: "@deno/linux-arm64-glibc",
    target: "aarch64-unknown-linux-gnu",
    sha256: "d08d392418df53f4e6e88a08909c0e1bccbf9adcead7232df72b6ad6075ec416",
  },
};

/** Deno's name for machines of that kind. */
export function targetOf(arch: Arch): string {
  return RUNTIMES[arch].target;
}

/** Throws `failed_precondition` unless this very Deno is the one that releases are built with. */
export function demandPinnedDeno(): void {
  if (Deno.version.deno === DENO_VERSION) return;
  throw new HeddleError(
    "failed_precondition",
    `Cannot build: this is Deno ${Deno.version.deno}, and releases are built with ` +
      `${DENO_VERSION}. Run: npx -y deno@${DENO_VERSION} task build`,
  );
}

/**
 * The path of the runtime for `arch`: the running Deno when it is that, or else npm's, kept in the
 * user's cache folder. Throws `system` when npm brings something else.
 */
export async function findRuntime(arch: Arch): Promise<string> {
  const { sha256 } = RUNTIMES[arch];
  const cached = `${
    Deno.env.get("XDG_CACHE_HOME") ?? `${homedir()}/.cache`
  }/heddle/deno-${DENO_VERSION}-${arch}`;
  for (const path of [Deno.execPath(), cached]) {
    if (await sha256File(path).catch(() => undefined) === sha256) return path;
  }
  return await fetchRuntime(arch, cached);
}

/** Whether the file is a Deno that releases are run by, and not what executables are made around. */
export async function isWholeDeno(path: string): Promise<boolean> {
  const found = await sha256File(path).catch(() => undefined);
  return Object.values(RUNTIMES).some(({ sha256 }) => sha256 === found);
}

async function fetchRuntime(arch: Arch, path: string): Promise<string> {
  const { source, sha256 } = RUNTIMES[arch];
  const parent = path.replace(/\/[^/]*$/, "");
  await Deno.mkdir(parent, { recursive: true });
  const folder = await Deno.makeTempDir({ dir: parent, prefix: "making-" });
  try {
    await execute("npm", [
      "pack",
      "--silent",
      "--pack-destination",
      folder,
      `${source}@${DENO_VERSION}`,
    ]);
    const archive = [...Deno.readDirSync(folder)].find(({ name }) => name.endsWith(".tgz"));
    await execute("tar", ["-xzf", `${folder}/${archive?.name}`, "-C", folder, "package/deno"]);
    const found = await sha256File(`${folder}/package/deno`);
    if (found !== sha256) {
      throw new HeddleError(
        "system",
        `Cannot use ${source}@${DENO_VERSION}: its checksum is ${found}, and ${sha256} is known`,
      );
    }
    await Deno.rename(`${folder}/package/deno`, path);
    return path;
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}
