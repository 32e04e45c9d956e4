/** Finding processes by what they were started with: a pid alone could be anybody's by now. */

// Deno itself may not look into /proc under any scoped permission, so a shell does.
const SCRIPT = `
for folder in /proc/[0-9]*; do
  tr '\\0' '\\n' <"$folder/cmdline" 2>/dev/null | grep -Fxq -- "$WANTED" && echo "\${folder#/proc/}"
done
:
`;

/** Pids of the processes that have `argument` among their arguments, this one left out. */
export async function findByArgument(argument: string): Promise<number[]> {
  const output = await new Deno.Command("/bin/sh", {
    args: ["-c", SCRIPT],
    // Not as an argument: then the search would find itself.
    env: { WANTED: argument },
    stdin: "null",
    stderr: "null",
  }).output();
  return new TextDecoder().decode(output.stdout).split("\n")
    .filter((line) => line !== "").map(Number).filter((pid) => pid !== Deno.pid);
}
