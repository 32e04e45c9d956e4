/**
 * Only one `up` at a time owns a state directory: two would stop each other's engines and lose each
 * other's notes. The system frees a claim however its owner ends.
 */
import { join } from "node:path";
import { errorText, HeddleError } from "@heddle/proto/error";

function fileOf(state: string): string {
  return join(state, "up.lock");
}

/** Makes the directory with room for logs. Throws `system` when it cannot be written. */
export async function makeStateDirectory(state: string): Promise<void> {
  try {
    await Deno.mkdir(join(state, "logs"), { recursive: true, mode: 0o700 });
  } catch (error) {
    throw cannotWrite(state, error);
  }
}

/** Holds the directory until disposed of; undefined when another `up` does. */
export async function claimState(state: string): Promise<Disposable | undefined> {
  await makeStateDirectory(state);
  const file = await open(state);
  if (!await file.tryLock(true)) {
    file.close();
    return undefined;
  }
  await file.truncate(0);
  await file.write(new TextEncoder().encode(String(Deno.pid)));
  return file;
}

/** Pid of the `up` that holds the directory now; undefined when none does. */
export async function claimedBy(state: string): Promise<number | undefined> {
  const text = await Deno.readTextFile(fileOf(state)).catch(() => undefined);
  if (text === undefined) return undefined;
  using file = await open(state);
  if (await file.tryLock(false)) return undefined;
  const pid = Number(text);
  return Number.isInteger(pid) && pid > 0 ? pid : undefined;
}

// Not truncated on opening: what the owner wrote stays while it is the owner.
async function open(state: string): Promise<Deno.FsFile> {
  try {
    return await Deno.open(fileOf(state), { read: true, write: true, create: true, mode: 0o600 });
  } catch (error) {
    throw cannotWrite(state, error);
  }
}

/** What to say of a state directory that cannot be written. */
export function cannotWrite(state: string, error: unknown): HeddleError {
  return new HeddleError(
    "system",
    `Cannot write to the state directory ${state}: ${
      errorText(error)
    }. Choose another with --state DIR`,
    { cause: error },
  );
}
