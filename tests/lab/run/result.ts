/** What became of a scenario: told from the process that ran it to the one that reports. */
import { z } from "zod";

const stepSchema = z.object({
  name: z.string(),
  ms: z.number(),
  failure: z.string().optional(),
});

const resultSchema = z.object({
  name: z.string(),
  ms: z.number(),
  steps: z.array(stepSchema),
  failure: z.string().optional(),
  skipped: z.string().optional(),
});

export interface StepResult {
  readonly name: string;
  readonly ms: number;
  /** Why it failed; undefined when it did not. */
  readonly failure?: string | undefined;
}

export interface ScenarioResult {
  readonly name: string;
  readonly ms: number;
  readonly steps: readonly StepResult[];
  readonly failure?: string | undefined;
  /** Why it was not run; undefined when it was. */
  readonly skipped?: string | undefined;
}

export async function writeResult(file: string, result: ScenarioResult): Promise<void> {
  await Deno.writeTextFile(file, JSON.stringify(result));
}

/** Undefined when there is none: what should have written it was killed. */
export async function readResult(file: string): Promise<ScenarioResult | undefined> {
  try {
    return resultSchema.parse(JSON.parse(await Deno.readTextFile(file)));
  } catch {
    return undefined;
  }
}
