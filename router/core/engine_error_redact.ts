/** Takes out of an engine's words what a client must not learn of the fleet. */

/** Longest message that is passed on; a stack trace of an engine helps no client. */
const MESSAGE_CHARS_MAX = 2_000;
const HIDDEN = "[hidden]";

/** What betrays a place or a key by its form. Order matters: a URL holds an address. */
const FORMS: readonly RegExp[] = [
  /\b(?:https?|grpc|tcp|ipc|zmq):\/\/[^\s"'<>)\]}]+/gi,
  /\b(?:sk|hf|nvapi)[-_][A-Za-z0-9_-]{8,}/g,
  /(?<=\bBearer\s)[^\s"',]+/gi,
  // IPv4 with or without a port; IPv6 of at least three groups, or shortened.
  /(?<![\d.])(?:\d{1,3}\.){3}\d{1,3}(?::\d{1,5})?(?![\d.])/g,
  /\[[0-9a-f:]*:[0-9a-f:]*(?:%\w+)?\](?::\d{1,5})?/gi,
  /(?<![\w:])(?:[0-9a-f]{1,4}:){3,7}[0-9a-f]{0,4}(?![\w:])/gi,
  /(?<![\w:])[0-9a-f]{0,4}(?::[0-9a-f]{1,4})*::(?:[0-9a-f]{1,4}:?){0,7}(?![\w:])/gi,
  /\blocalhost:\d{1,5}\b/gi,
  // A path of the engine's machine.
  /(?<![\w/.])\/(?:data|dev|etc|home|mnt|models?|opt|proc|root|run|srv|sys|tmp|usr|var|workspace)(?:\/[\w.@+~-]+)+/g,
];

/** `message` fit for a client: without `secrets`, addresses, keys, paths and control characters. */
export function redactMessage(message: string, secrets: readonly string[] = []): string {
  let text = message.length > MESSAGE_CHARS_MAX * 4
    ? message.slice(0, MESSAGE_CHARS_MAX * 4)
    : message;
  // The longest first: an address with its port before the address.
  for (const secret of [...secrets].sort((a, b) => b.length - a.length)) {
    if (secret !== "") text = text.replaceAll(secret, HIDDEN);
  }
  for (const form of FORMS) text = text.replace(form, HIDDEN);
  // deno-lint-ignore no-control-regex -- these are what is taken out
  text = text.replace(/[\0-\x08\x0b-\x1f\x7f]/g, " ").trim();
  return text.length > MESSAGE_CHARS_MAX ? `${text.slice(0, MESSAGE_CHARS_MAX)}…` : text;
}
