/** What `deno task simulate` is asked for. */
import { parseArgs } from "node:util";

export const HELP = `deno task simulate [--runs N] [--seed S] [--nodes N] [--trace]
deno task simulate --mutate NAME|all [--runs N]

  --runs N     how many runs, 1000 by default; with --mutate the most that each may take, 400
  --seed S     the first seed, 1 by default; a failing run prints its own
  --nodes N    the largest cluster, 200 by default
  --trace      print everything that happened in the run that fails, or in the only one
  --mutate M   break control on purpose and see the right invariant fail; "all" tries each
`;

export interface Options {
  /** Absent when not given. */
  readonly runs?: number;
  readonly seed: number;
  readonly nodes: number;
  readonly trace: boolean;
  readonly mutate?: string;
  readonly help: boolean;
}

/** Throws a TypeError that says which option is wrong. */
export function parseOptions(args: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...args],
    options: {
      runs: { type: "string" },
      seed: { type: "string" },
      nodes: { type: "string" },
      trace: { type: "boolean" },
      mutate: { type: "string" },
      help: { type: "boolean", short: "h" },
    },
  });
  return {
    ...(values.runs === undefined ? {} : { runs: whole("--runs", values.runs) }),
    seed: whole("--seed", values.seed ?? "1"),
    nodes: whole("--nodes", values.nodes ?? "200"),
    trace: values.trace ?? false,
    ...(values.mutate === undefined ? {} : { mutate: values.mutate }),
    help: values.help ?? false,
  };
}

function whole(option: string, text: string): number {
  const number = Number(text);
  if (/^\d+$/.test(text) && Number.isSafeInteger(number) && number > 0) return number;
  throw new TypeError(`${option} ${text}: want a whole number, 1 or more`);
}
