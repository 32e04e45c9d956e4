/** Takes secrets out of what engines print: older ones show their keys in their own log. */

const HIDDEN = "[hidden]";

const PATTERNS: readonly RegExp[] = [
  /\bsk-[A-Za-z0-9_-]{8,}/g,
  /\bhf_[A-Za-z0-9]{8,}/g,
  /(?<=\bBearer\s+)[^\s"']+/gi,
  // `--api-key X`, `api_key='X'`, `"hf_token": "X"`, `VLLM_API_KEY=X`
  /(?<=\b[\w-]*(?:api[-_]?key|token|secret|password)["']?(?:\s*[=:]\s*|\s+)["']?)(?!None\b|null\b)[A-Za-z0-9_.+/=-]{12,}/gi,
];

/** `line` without what looks like a secret, and without any of `known`. */
export function redactLine(line: string, known: readonly string[]): string {
  let text = line;
  for (const secret of known) {
    // Shorter ones would blank out innocent words.
    if (secret.length >= 8) text = text.replaceAll(secret, HIDDEN);
  }
  for (const pattern of PATTERNS) text = text.replace(pattern, HIDDEN);
  return text;
}
