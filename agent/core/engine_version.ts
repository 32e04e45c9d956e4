/** Reads an engine's version out of what it prints when asked for it. */

/**
 * The version in `output`, or undefined when none can be told. Engines print it in their own ways:
 * "0.28.1", "vLLM 0.28.1+cu129", "heddle-sim 0.1.0", "version: 9093 (00dc8057)",
 * "version: 0.6.0-dev (build 11434, commit 00dc8057)". Warnings of their
 * libraries may come before; what is on a line of its own, or after the word version, counts most.
 */
export function engineVersion(output: string): string | undefined {
  const lines = output.replaceAll(COLOUR, "").split(/\r?\n/).map((line) => line.trim());
  for (const pattern of PATTERNS) {
    for (const line of lines) {
      const version = pattern.exec(line)?.[1];
      if (version !== undefined) return version;
    }
  }
  return undefined;
}

const COLOUR = new RegExp(`${String.fromCharCode(27)}\\[[0-9;]*[A-Za-z]`, "g");
// A part after the numbers has its separator, or none follows: otherwise a long word could be divided
// into parts in so many ways that trying them all takes for ever.
const NUMBER = String.raw`\d+(?:\.\d+)+[A-Za-z0-9]*(?:[-+.][A-Za-z0-9]+)*`;
const PATTERNS: readonly RegExp[] = [
  // Newer llama.cpp: its releases go by the build, and one that was not built from a tag has 0 or 1.
  /^version:.*\(build (\d{3,}),/i,
  /^version:\s*(b?\d+)(?![\w.])/i,
  new RegExp(`^version:?\\s*v?(${NUMBER})`, "i"),
  new RegExp(`^v?(${NUMBER})$`),
  new RegExp(`^[A-Za-z][\\w.-]*[ ,]+(?:version[ :]+)?v?(${NUMBER})$`, "i"),
  /^(?:[A-Za-z][\w.-]*\s+)?(b\d{3,})$/,
];
