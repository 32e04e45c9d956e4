/** `ctl models inspect SOURCE`: what a model is, and where it fits, before anything is fetched. */
import { buildCommand } from "@stricli/core";
import {
  type InspectSourceResponse,
  InspectSourceResponseSchema,
  type ModelFacts,
} from "@heddle/proto/gen/weights";
import {
  COMMON_FLAGS,
  type CommonFlags,
  type CtlContext,
  FORM_ALIASES,
  FORM_FLAGS,
  type FormFlags,
} from "../../command.ts";
import { screenForm, writeScreen } from "../../live/screen.ts";
import { plural } from "../../status/plural.ts";
import { sayWait } from "../../io.ts";
import { toRecord } from "../../record.ts";
import { visible } from "../../table.ts";
import { callWeights, SLOW_CALL_MS } from "./client.ts";
import { formatBytes } from "./quantity.ts";

interface InspectFlags extends CommonFlags, FormFlags {
  readonly node?: string;
  readonly include?: string;
  readonly exclude?: string;
}

const text = (placeholder: string, brief: string) =>
  ({ kind: "parsed", parse: String, optional: true, placeholder, brief }) as const;

export const inspectModel = buildCommand({
  docs: {
    brief: "Say what a model is and where in the fleet it fits, before it is fetched",
    fullDescription: "SOURCE is what a catalog may say: hf://ORG/NAME@REVISION/FILE, an https:// " +
      "address, or a path on the nodes. A node reads a few small files of it.",
  },
  parameters: {
    flags: {
      ...COMMON_FLAGS,
      ...FORM_FLAGS,
      node: text("name", "Which node looks; left out: any"),
      include: text("a,b", "Patterns of files, as source_include in the catalog"),
      exclude: text("a,b", "Patterns of files, as source_exclude in the catalog"),
    },
    aliases: FORM_ALIASES,
    positional: {
      kind: "tuple",
      parameters: [{ parse: String, brief: "Where the weights come from", placeholder: "source" }],
    },
  },
  async func(this: CtlContext, flags: InspectFlags, source: string) {
    const form = screenForm(flags);
    const list = (value: string | undefined) =>
      value?.split(",").filter((each) => each !== "") ?? [];
    const want = { source, include: list(flags.include), exclude: list(flags.exclude) };
    const who = flags.node === undefined ? "A node" : visible(flags.node);
    sayWait(this.io, `${who} reads a few files of ${visible(source)}; that may take minutes`);
    const answer = await callWeights(
      this,
      flags,
      (client) =>
        client.inspectSource({ want, node: flags.node ?? "" }, { timeoutMs: SLOW_CALL_MS }),
    );
    writeScreen(this.io, form, {
      text: () => inspectionText(answer),
      record: () => toRecord(InspectSourceResponseSchema, answer),
    });
  },
});

/** The whole answer for a person to read. */
function inspectionText(answer: InspectSourceResponse): string {
  const { facts, node, sizes, classes, catalogEntry } = answer;
  const count = facts?.files ?? 0;
  const files = count === 0 ? "" : ` in ${count} ${count === 1 ? "file" : "files"}`;
  const weights = facts?.weightBytes === undefined
    ? "of unknown size"
    : formatBytes(facts.weightBytes);
  const lines = [
    `source       ${facts?.want?.source ?? ""}`,
    `version      ${facts?.want?.version || "unknown"}`,
    `to fetch     ${formatBytes(facts?.totalBytes ?? 0n)}${files}`,
    `weights      ${weights}`,
    ...modelLines(facts?.model),
    ...(facts?.note ? [`note         ${facts.note}`] : []),
    `read by      ${node}`,
    "",
    "Memory of each GPU, beside the cache:",
    ...sizes.map(({ tp, problem, memoryBytes, kvBytesPerToken }) =>
      `  tp ${tp}   ${
        problem !== ""
          ? problem
          : `${formatBytes(memoryBytes)}${
            kvBytesPerToken === undefined
              ? ""
              : `, and ${formatBytes(kvBytesPerToken)} for each token of context`
          }`
      }`
    ),
    "",
    ...(classes.length === 0
      ? ["No GPU of a known class is in the fleet."]
      : ["Longest context on the fleet's GPUs, in tokens:", ...classLines(answer)]),
    "",
    "For the catalog:",
    "",
    catalogEntry,
  ];
  return lines.join("\n");
}

function modelLines(model: ModelFacts | undefined): readonly string[] {
  if (model === undefined) return [];
  const { layers, heads, kvHeads, contextMax, kvWindow } = model;
  const { dtype, quantization, architecture } = model;
  const parts = [
    ...(layers === undefined ? [] : [plural(layers, "layer")]),
    ...(heads === undefined ? [] : [plural(heads, "head")]),
    ...(kvHeads === undefined ? [] : [plural(kvHeads, "KV head")]),
  ];
  return [
    ...(architecture === "" ? [] : [`model        ${architecture}`]),
    ...(parts.length === 0 ? [] : [`shape        ${parts.join(", ")}`]),
    ...(dtype === "" ? [] : [`dtype        ${dtype}`]),
    ...(quantization === "" ? [] : [`quantised    ${quantization}`]),
    ...(contextMax === undefined ? [] : [`context      ${contextMax} tokens at most`]),
    ...(kvWindow === undefined
      ? []
      : [`windows      some layers keep the last ${kvWindow} tokens only`]),
  ];
}

function classLines({ classes }: InspectSourceResponse): readonly string[] {
  return classes.map(({ gpuClass, gpusMax, contexts }) => {
    const cells = contexts.map(({ tp, tokens }) =>
      `tp ${tp}: ${tokens === undefined ? "unknown" : tokens === 0n ? "does not fit" : tokens}`
    );
    return `  ${gpuClass} (up to ${gpusMax} on a node)   ${cells.join(", ")}`;
  });
}
