/** Reasons from several places as one text, in which nothing stands twice. */

/** "no_gpu: none is free"; where the message begins with the word itself, the message. */
export function reasonText(reason: string, message: string): string {
  if (reason === "" || message === "") return reason + message;
  return begins(message, reason) ? message : `${reason}: ${message}`;
}

/** All that are not empty and that no other of them says already. */
export function joinReasons(texts: readonly string[], separator = "; "): string {
  const said = [...new Set(texts.map((text) => text.trim()).filter((text) => text !== ""))];
  return said.filter((text) => !said.some((other) => other !== text && other.includes(text)))
    .join(separator);
}

function begins(text: string, word: string): boolean {
  return text === word || text.startsWith(`${word}:`) || text.startsWith(`${word} `);
}
