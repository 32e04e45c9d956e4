import { deepEqual, equal, throws } from "node:assert/strict";
import { VERSION } from "@heddle/common/version";
import { parseBuildOptions } from "./options.ts";

const PLACE = { root: "/r", own: "x86_64" };

Deno.test("parseBuildOptions() builds bundles for this machine into dist/", () => {
  deepEqual(parseBuildOptions([], PLACE), {
    out: "/r/dist",
    arch: "x86_64",
    form: "bundle",
    prefix: `/opt/heddle/releases/${VERSION}`,
    state: undefined,
    help: false,
  });
});

Deno.test("parseBuildOptions() knows an architecture by all its names", () => {
  for (const name of ["arm64", "aarch64"]) {
    equal(parseBuildOptions(["--arch", name], PLACE).arch, "aarch64");
  }
  for (const name of ["x86_64", "x86-64", "amd64", "x64"]) {
    equal(parseBuildOptions(["--arch", name], { ...PLACE, own: "aarch64" }).arch, "x86_64");
  }
});

Deno.test("parseBuildOptions() puts the file for rented boxes elsewhere than a release", () => {
  const { form, out } = parseBuildOptions(["--attach"], PLACE);
  deepEqual([form, out], ["attach", "/r/dist-attach"]);
});

Deno.test("parseBuildOptions() refuses what makes no sense, and names the flag", () => {
  const cases: readonly (readonly [readonly string[], RegExp])[] = [
    [["--arch", "riscv64"], /--arch riscv64: want x86_64 or arm64/],
    [["--arch", "constructor"], /--arch constructor/],
    [["--attach", "--compile"], /--attach with --compile/],
    [["--attach", "--prefix", "/p"], /--prefix: it goes with --compile/],
    [["--prefix", "/p"], /--prefix: it goes with --compile/],
    [["--compile", "--prefix", "p"], /--prefix p: want an absolute path/],
    [["--compile", "--state", "/a,b"], /--state \/a,b: .* without a comma/],
    [["--outt", "x"], /--outt/],
    [["x"], /'x'/],
  ];
  for (const [args, words] of cases) throws(() => parseBuildOptions(args, PLACE), words);
});
