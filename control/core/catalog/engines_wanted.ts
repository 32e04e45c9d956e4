/** Which engines every node is to have, as control.yaml says it. */
import { z } from "zod";

const GITHUB = "https://api.github.com/repos/ggml-org/llama.cpp/releases";

/** Whose flags, variables and metrics this release's adapters are tested against. */
export const TESTED_VERSIONS = { llamacpp: "b11434", vllm: "0.33.0", sglang: "0.5.23" } as const;

const engineSchema = z.strictObject({
  name: z.enum(["llamacpp", "vllm", "sglang"]).describe("Which kind of engine it is"),
  versions: z.array(
    z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._+-]{0,63}$/, 'want a version, "0.28.1" or "b11069"'),
  ).min(1).optional().describe(
    "Versions that stand side by side; a profile may pin one of them. Left out: the one that this release was tested with",
  ),
  releases: z.string().refine(isPlace, "want an address or an absolute path").optional()
    .describe(
      "llama.cpp: where the releases' JSON is, or a folder on the nodes with it; left out: GitHub",
    ),
  index: z.string().refine(isPlace, "want an address or an absolute path").optional()
    .describe(
      "Python: an index of packages, or a folder of wheels on the nodes; left out: uv's own",
    ),
  packages: z.array(z.string().min(1)).default([])
    .describe('Python: what is installed besides, as in "torch==2.9.0"'),
  package_index: z.boolean().default(false)
    .describe("llama.cpp: build it from the package index, as Python engines are installed"),
});

export const enginesSchema = z.array(engineSchema);

export interface WantedEngine {
  readonly name: string;
  readonly version: string;
  readonly releases: string;
  readonly index: string;
  readonly packages: string[];
}

/** One for each version. */
export function wantedEngines(engines: z.output<typeof enginesSchema>): readonly WantedEngine[] {
  return engines.flatMap(({ name, versions, releases, index, packages, package_index }) => {
    const archive = name === "llamacpp" && !package_index;
    return (versions ?? [TESTED_VERSIONS[name]]).map((version) => ({
      name,
      version,
      releases: archive ? releases ?? GITHUB : "",
      index: index ?? "",
      packages,
    }));
  });
}

function isPlace(text: string): boolean {
  return text.startsWith("/") || /^https?:\/\//.test(text) && URL.canParse(text);
}
