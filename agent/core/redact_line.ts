/** Takes secrets out of what engines print: older ones show their keys in their own log. */

const HIDDEN = "[hidden]";

const PATTERNS: readonly RegExp[] = [
  /\bsk-[A-Za-z0-9_-]{8,}/g,
  /\bhf_[A-Za-z0-9]{8,}/g,
  /(?<=\bBearer\s+)[^\s"']+/gi,
  // `--api-key X`, `api_key='X'`, `"hf_token": "X"`, `VLLM_API_KEY=X`
  /(?<=\b[\w-]*(?:api[-_]?key|token|secret|password)["']?(?:\s*[=:]\s*|\s+)["']?)(?!None\b|null\b)[A-Za-z0-9_.+/=-]{12,}/gi,
];

const SECRET_NAME = /(?:key|token|secret|password|credential)s?$/i;

/** What an engine was given that nobody may read: its key, and variables whose names say so. */
export function secretsOf(given: {
  readonly apiKey: string;
  readonly env: Readonly<Record<string, string>>;
}): readonly string[] {
  const named = Object.entries(given.env).filter(([name]) => SECRET_NAME.test(name));
  return [given.apiKey, ...named.map(([, value]) => value)];
}

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
