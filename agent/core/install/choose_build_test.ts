import { deepEqual, equal, match, ok, throws } from "node:assert/strict";
import { chooseAsset } from "./choose_asset.ts";
import { chooseWheel } from "./choose_wheel.ts";
import { cudaOfDriver, driverOf } from "./cuda.ts";

const asset = (name: string) => ({ name, url: "", size: 1, digest: `sha256:${"0".repeat(64)}` });

/** As a release of autumn 2026 names them, and one from before Linux had builds for CUDA. */
const NEW = [
  "cudart-llama-bin-win-cuda-13.4-x64.zip",
  "llama-b11069-bin-macos-arm64.tar.gz",
  "llama-b11069-bin-ubuntu-arm64.tar.gz",
  "llama-b11069-bin-ubuntu-cuda-13-x64.tar.gz",
  "llama-b11069-bin-ubuntu-openvino-2026.2-x64.tar.gz",
  "llama-b11069-bin-ubuntu-rocm-7.14-x64.tar.gz",
  "llama-b11069-bin-ubuntu-sycl-fp16-x64.tar.gz",
  "llama-b11069-bin-ubuntu-vulkan-x64.tar.gz",
  "llama-b11069-bin-ubuntu-x64.tar.gz",
  "llama-b11069-bin-win-cuda-13.4-x64.zip",
].map(asset);
const OLD = NEW.filter(({ name }) => !name.includes("ubuntu-cuda"));

const machine = (driver: string, arch = "x86_64") => ({ arch, driver, cuda: cudaOfDriver(driver) });

Deno.test("chooseAsset() takes the build for the driver, else the one for the processor", () => {
  const cases: readonly (readonly [typeof NEW, ReturnType<typeof machine>, string])[] = [
    [NEW, machine("580.65.06"), "ubuntu-cuda-13-x64"],
    [NEW, machine(""), "ubuntu-x64"],
    [NEW, machine("580.65.06", "aarch64"), "ubuntu-arm64"],
    [OLD, machine("580.65.06"), "ubuntu-x64"],
    [[...NEW, asset("llama-b1-bin-ubuntu-cuda-12.8-x64.tar.gz")], machine("550.54"), "cuda-12.8"],
    [[...NEW, asset("llama-b1-bin-ubuntu-cuda-12.8-x64.tar.gz")], machine("590.1"), "cuda-13-x64"],
  ];
  for (const [assets, node, part] of cases) {
    const chosen = chooseAsset(assets, node);
    ok(chosen.kind === "asset", `${node.driver} ${node.arch}`);
    ok(chosen.asset.name.includes(part), `${chosen.asset.name} is not ${part}`);
  }
});

Deno.test("chooseAsset() leaves no GPU idle behind a driver that is too old", () => {
  const chosen = chooseAsset(NEW, machine("550.163.01"));
  ok(chosen.kind === "none");
  equal(chosen.reason, "driver_too_old");
  match(chosen.why, /CUDA 13 needs driver 580, the node has 550\.163\.01/);
});

const VLLM = { engine: "vllm" as const, version: "0.33.0", index: "", packages: [] };

Deno.test("chooseWheel() finds vLLM's wheel for the driver's CUDA", () => {
  const of = (driver: string, changes: Partial<Parameters<typeof chooseWheel>[0]> = {}) =>
    chooseWheel({ ...VLLM, ...changes }, { driver, cuda: cudaOfDriver(driver) });
  deepEqual(of("580.65.06"), { kind: "from", args: [] });
  deepEqual(of("550.163.01", { version: "0.20.2" }), { kind: "from", args: [] });
  const older = of("550.163.01");
  ok(older.kind === "from");
  ok(older.args.includes("https://wheels.vllm.ai/0.33.0/cu129"));
  ok(older.args.includes("unsafe-best-match"));
  const tooOld = of("470.256.02");
  ok(tooOld.kind === "none");
  equal(tooOld.reason, "driver_too_old");
  match(tooOld.why, /needs driver 525, the node has 470\.256\.02/);
  const none = of("");
  ok(none.kind === "none");
  equal(none.reason, "driver_missing");
});

Deno.test("chooseWheel() takes SGLang's wheel where the driver runs its CUDA, and refuses it elsewhere", () => {
  const of = (
    version: string,
    driver: string,
    changes: { index?: string; packages?: string[] } = {},
  ) =>
    chooseWheel(
      { engine: "sglang", version, index: "", packages: [], ...changes },
      { driver, cuda: cudaOfDriver(driver) },
    );
  const besides = ["--prerelease", "allow"];
  // Read from what these versions require: cuda-python 12.9 up to 0.5.10, and 13 from 0.5.11 on.
  for (const [version, driver] of [["0.5.23", "580.65.06"], ["0.5.10", "550.163.01"]] as const) {
    deepEqual(of(version, driver), { kind: "from", args: besides }, version);
  }
  for (const version of ["0.5.11", "0.5.23", "0.5.23rc1"]) {
    const refused = of(version, "550.163.01");
    ok(refused.kind === "none", version);
    equal(refused.reason, "driver_too_old");
    match(refused.why, /built for CUDA 13 and needs driver 580, the node has 550\.163\.01/);
    match(refused.why, /versions before 0\.5\.11 .* name an index or packages/);
  }
  const oldest = of("0.5.10", "470.256.02");
  ok(oldest.kind === "none");
  match(oldest.why, /needs driver 525/);
  ok(of("0.5.23", "").kind === "none");
  deepEqual(of("0.5.23", "550.163.01", { packages: ["torch==2.13.0+cu129"] }), {
    kind: "from",
    args: besides,
  });
  deepEqual(of("0.5.23", "", { index: "/srv/wheels" }), {
    kind: "from",
    args: ["--no-index", "--find-links", "/srv/wheels", ...besides],
  });
});

Deno.test("chooseWheel() takes an operator's index and packages as they are", () => {
  const of = (changes: Partial<Parameters<typeof chooseWheel>[0]>) =>
    chooseWheel({ ...VLLM, ...changes }, { driver: "", cuda: undefined });
  deepEqual(of({ index: "/srv/wheels" }), {
    kind: "from",
    args: ["--no-index", "--find-links", "/srv/wheels"],
  });
  deepEqual(of({ index: "https://pypi.internal/simple" }), {
    kind: "from",
    args: ["--default-index", "https://pypi.internal/simple"],
  });
  deepEqual(of({ packages: ["torch==2.13.0+cpu"] }), { kind: "from", args: [] });
  deepEqual(of({ engine: "llamacpp" }), { kind: "from", args: [] });
});

Deno.test("driverOf() tells a node without GPUs from one whose driver is silent", () => {
  const of = (driverVersion: string, gpus: number, ...reasons: string[]) =>
    driverOf({
      driverVersion,
      gpus: Array(gpus).fill({}),
      problems: reasons.map((reason) => ({ reason, detail: `${reason}!` })),
    });
  equal(of("580.65.06", 8), "580.65.06");
  equal(of("", 0), "");
  equal(of("", 0, "nvidia_smi_missing", "memory_swapped"), "");
  throws(() => of("", 0, "driver_hung"), /driver_hung!/);
  throws(() => of("", 0, "driver_missing"), /driver_missing!/);
  throws(() => of("", 2), /no answer/);
});
