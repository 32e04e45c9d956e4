/** An entry to paste into a catalog, for a model that was looked at. */
import type { Plain } from "@heddle/proto/plain";
import type { SourceFacts } from "@heddle/proto/gen/weights";
import type { ClassFitting } from "./classes.ts";
import { isGguf } from "./memory.ts";

/** Enough for most conversations; a smaller group that holds as much is the better one. */
const CONTEXT_WANTED = 8_192;

/** YAML, with one profile for each class on which the model fits. */
export function catalogEntry(
  facts: Plain<SourceFacts>,
  classes: readonly ClassFitting[],
): string {
  const source = facts.want?.source ?? "";
  const gguf = isGguf(facts);
  const profiles = classes.flatMap((each) => profileOn(each, gguf, facts));
  const lines = [
    `- name: ${nameOf(source)}`,
    `  source: ${source}`,
    ...patterns("source_include", facts.want?.include ?? []),
    ...patterns("source_exclude", facts.want?.exclude ?? []),
    "  profiles:",
    ...(profiles.length > 0 ? profiles : [
      "    # No GPU class of this fleet holds it.",
      ...(gguf
        ? ["    - name: cpu", "      engine: llamacpp", "      args: [-c, 4096]"]
        : ["    - name: default", "      gpu_class: h100-80g"]),
    ]),
  ];
  return `${lines.join("\n")}\n`;
}

function profileOn(
  { gpuClass, contexts }: ClassFitting,
  gguf: boolean,
  facts: Plain<SourceFacts>,
): readonly string[] {
  const longest = Number(facts.model?.contextMax ?? Infinity);
  const fitting = contexts.filter(({ tokens }) => tokens !== 0);
  const best = fitting.find(({ tokens }) => (tokens ?? 0) >= Math.min(CONTEXT_WANTED, longest)) ??
    fitting.at(-1);
  if (best === undefined) return [];
  const { tp, tokens } = best;
  const context = tokens === undefined ? [] : [
    gguf ? `      args: [-c, ${tokens}]` : `      args: [--max-model-len, ${tokens}]`,
  ];
  return [
    `    - name: ${gpuClass}`,
    ...(gguf ? ["      engine: llamacpp"] : []),
    `      gpu_class: ${gpuClass}`,
    ...(tp > 1 ? [`      tp: ${tp}`] : []),
    ...context,
  ];
}

function patterns(key: string, values: readonly string[]): readonly string[] {
  return values.length === 0 ? [] : [`  ${key}: ${JSON.stringify(values)}`];
}

/** "qwen3-32b" of hf://Qwen/Qwen3-32B and of …/Qwen3-32B-Q4_K_M.gguf alike. */
function nameOf(source: string): string {
  const last = source.replace(/[?#].*$/, "").replace(/\/+$/, "").replace(/@[^/]*$/, "")
    .split("/").at(-1) ?? "";
  const name = last.toLowerCase().replace(/\.(?:gguf|safetensors\.index\.json|safetensors)$/, "")
    .replace(/[^a-z0-9.]+/g, "-").replace(/^[-.]+|[-.]+$/g, "");
  return name === "" ? "model" : name;
}
