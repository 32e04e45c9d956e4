/** `ctl bench`: the highest load at which a model keeps what is promised. */
import { buildCommand } from "@stricli/core";
import { parseDurationMs } from "@heddle/common/duration";
import { errorText, HeddleError } from "@heddle/proto/error";
import type { Level, Slo } from "../bench/measured.ts";
import { type Found, search } from "../bench/search.ts";
import { namedShape, type Shape, SHAPES } from "../bench/shape.ts";
import { shapeOfLines } from "../bench/shape_file.ts";
import { COMMON_FLAGS, type CtlContext } from "../command.ts";
import { ENDPOINT_FLAGS, type EndpointFlags, endpointOf } from "../endpoint.ts";
import type { Io } from "../io.ts";
import { visible } from "../table.ts";

interface BenchFlags extends EndpointFlags {
  readonly shape: string;
  readonly ttft: number;
  readonly tpot: number;
  readonly seconds: number;
  readonly max: number;
  readonly seed: number;
  readonly ignoreEos: boolean;
  readonly json: boolean;
}

const whole = (text: string): number => {
  const number = Number(text);
  if (!Number.isSafeInteger(number) || number < 1) throw new Error("a whole number above 0");
  return number;
};

const time = (text: string): number => {
  const ms = parseDurationMs(text);
  if (ms === undefined || ms === 0) throw new Error('a time such as "500ms" or "2s"');
  return ms;
};

export const bench = buildCommand({
  docs: {
    brief: "Measure the highest load at which a model keeps its promise",
    fullDescription:
      "Doubles the number of requests at a time until more of them break the promise than a larger " +
      "load gains, narrows down, and repeats the best until it is stable. Asks any endpoint of " +
      "the OpenAI API; the same seed asks the same. It takes what capacity there is: users feel it.",
  },
  parameters: {
    flags: {
      ...COMMON_FLAGS,
      ...ENDPOINT_FLAGS,
      shape: {
        kind: "parsed",
        parse: String,
        default: "chat",
        placeholder: "shape",
        brief: `${SHAPES.join(", ")}, or a file of JSON lines`,
      },
      ttft: {
        kind: "parsed",
        parse: time,
        default: "1s",
        placeholder: "time",
        brief: "Promised time to the first token",
      },
      tpot: {
        kind: "parsed",
        parse: time,
        default: "100ms",
        placeholder: "time",
        brief: "Promised time of each further token, on average over a request",
      },
      seconds: {
        kind: "parsed",
        parse: whole,
        default: "10",
        brief: "How long each load is measured; longer where requests take longer",
      },
      max: { kind: "parsed", parse: whole, default: "256", brief: "Most requests at a time" },
      seed: {
        kind: "parsed",
        parse: whole,
        default: "1",
        brief: "Other prompts for another number",
      },
      ignoreEos: {
        kind: "boolean",
        default: false,
        brief: "Answers of the full length, for engines that know ignore_eos",
      },
      json: { kind: "boolean", default: false, brief: "The result as JSON" },
    },
    positional: {
      kind: "tuple",
      parameters: [{ brief: "Name or alias of the model", parse: String, placeholder: "model" }],
    },
  },
  async func(this: CtlContext, flags: BenchFlags, model: string) {
    const { base, key } = await endpointOf(this, flags);
    const shape = await shapeOf(flags.shape);
    const slo = { ttftMs: flags.ttft, tpotMs: flags.tpot };
    const progress: Io = flags.json ? { ...this.io, out: this.io.err } : this.io;
    progress.out(`${HEAD}\n`);
    const found = await search({
      target: {
        base,
        model,
        key,
        ignoreEos: flags.ignoreEos,
      },
      shape,
      seed: flags.seed,
      slo,
      seconds: flags.seconds,
      concurrencyMax: flags.max,
      signal: this.signal,
      onLevel: (level) => progress.out(`${formatLevel(level)}\n`),
    });
    if (flags.json) {
      this.io.out(`${JSON.stringify({ model, shape: shape.name, slo, ...found }, null, 2)}\n`);
    } else this.io.out(formatFound(found, slo));
    if (found.best === undefined) this.fail();
  },
});

/** Throws `invalid_input`. */
async function shapeOf(name: string): Promise<Shape> {
  const named = namedShape(name);
  if (named !== undefined) return named;
  try {
    return shapeOfLines(name, await Deno.readTextFile(name));
  } catch (error) {
    if (error instanceof HeddleError) throw error;
    throw new HeddleError(
      "invalid_input",
      `${name} is neither one of ${SHAPES.join(", ")} nor a file that can be read: ${
        errorText(error)
      }`,
    );
  }
}

const HEAD =
  "AT A TIME  GOOD/S  WITHIN  TTFT p50   p99 ms  TPOT p50   p99 ms  TOKENS/S  CACHED  FAILED";

/** One line, under HEAD. */
function formatLevel(level: Level): string {
  const cells: readonly (readonly [string, number])[] = [
    [String(level.concurrency), 9],
    [level.goodput.toFixed(2), 8],
    [percent(level.within), 8],
    [number(level.ttftMs.p50), 10],
    [number(level.ttftMs.p99), 9],
    [number(level.tpotMs.p50, 1), 10],
    [number(level.tpotMs.p99, 1), 9],
    [level.completionTokensPerS.toFixed(0), 10],
    [level.cached === undefined ? "-" : percent(level.cached), 8],
    [String(level.failed), 8],
  ];
  return cells.map(([cell, width]) => cell.padStart(width)).join("");
}

/** The answer in words. */
function formatFound({ best, stable, spread, open, levels }: Found, slo: Slo): string {
  const promise = `first token within ${slo.ttftMs} ms and ${slo.tpotMs} ms a token after it`;
  if (best === undefined) {
    const why = levels.at(0)?.error;
    return `\nNo request kept the promise (${promise}), even one at a time` +
      `${why === undefined ? "" : `: ${visible(why)}`}\n`;
  }
  const lines = [
    "",
    `Best at ${best.concurrency} at a time: ${
      best.goodput.toFixed(2)
    } requests a second within the ` +
    `promise (${promise}), ${percent(best.within)} of all`,
    stable
      ? `Repeated measurements agree within ${percent(spread)}`
      : `Not stable: repeated measurements differ by ${percent(spread)}. Is there other traffic?`,
    ...(open ? ["It was still rising at the largest load: raise --max to go on"] : []),
  ];
  return lines.map((line) => `${line}\n`).join("");
}

function percent(part: number): string {
  return `${(100 * part).toFixed(0)} %`;
}

function number(value: number | undefined, digits = 0): string {
  return value === undefined ? "-" : value.toFixed(digits);
}
