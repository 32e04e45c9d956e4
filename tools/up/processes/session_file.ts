/** The note a running `up` leaves in its state directory, by which `down` finds it. */
import { join } from "node:path";
import { z } from "zod";
import { readTextIfExists, writeFileAtomic } from "@heddle/common/atomic_file";
import { errorText, HeddleError } from "@heddle/proto/error";

const sessionSchema = z.object({
  /** The `up` that wrote it. */
  pid: z.number().int(),
  /** Where `up` takes the order to stop. */
  stopPort: z.number().int(),
  /** Proves to `up` that who orders may read its state directory. */
  token: z.string(),
  /** Launchers with the configuration file that marks their processes. */
  programs: z.array(z.object({ label: z.string(), launcher: z.string(), config: z.string() })),
  /** What is printed when it is ready; absent until then. */
  summary: z.string().optional(),
  /** Why it cannot become ready; absent while it can. */
  failure: z.string().optional(),
});
export type Session = z.output<typeof sessionSchema>;

function fileOf(state: string): string {
  return join(state, "up.json");
}

export async function writeSession(state: string, session: Session): Promise<void> {
  await writeFileAtomic(fileOf(state), JSON.stringify(session));
}

/** The note, or undefined when there is none that makes sense. */
export async function readSession(state: string): Promise<Session | undefined> {
  const text = await readTextIfExists(fileOf(state)).catch((error: unknown) => {
    throw new HeddleError("system", `Cannot use the state directory ${state}: ${errorText(error)}`);
  });
  if (text === undefined) return undefined;
  try {
    return sessionSchema.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}

export async function removeSession(state: string): Promise<void> {
  await Deno.remove(fileOf(state)).catch(() => {});
}
