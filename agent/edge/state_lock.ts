/** Only one agent may own a state directory: two would each see the other's engines end. */
import { join } from "node:path";
import { errorText, HeddleError } from "@heddle/proto/error";

/** Holds the lock until disposed of, or until the process ends. Throws `failed_precondition`. */
export async function lockState(stateDirectory: string): Promise<Disposable> {
  let file: Deno.FsFile;
  try {
    await Deno.mkdir(stateDirectory, { recursive: true, mode: 0o700 });
    file = await Deno.open(join(stateDirectory, "lock"), {
      write: true,
      create: true,
      mode: 0o600,
    });
  } catch (error) {
    throw new HeddleError(
      "system",
      `Cannot use the state directory ${stateDirectory}: ${errorText(error)}`,
      { cause: error },
    );
  }
  if (await file.tryLock(true)) return file;
  file.close();
  throw new HeddleError(
    "failed_precondition",
    `Cannot use the state directory ${stateDirectory}: another agent is running on it; stop that one first`,
  );
}
