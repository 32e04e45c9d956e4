/** JSON as it came and as it was decoded, to be walked over: strings are stepped over natively. */

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

export interface JsonText {
  readonly bytes: Uint8Array;
  /**
   * The same, decoded, where each character is one byte of it; undefined where some are more. The
   * runtime searches text several times faster than bytes.
   */
  readonly ascii: string | undefined;
}

/** `text` is what `bytes` decode to. */
export function jsonText(bytes: Uint8Array, text: string): JsonText {
  return { bytes, ascii: text.length === bytes.length ? text : undefined };
}

/** Behind the quote that ends the string which begins at `start`; the end of text without one. */
export function stringEnd(json: JsonText, start: number): number {
  const { bytes } = json;
  for (let at = quoteFrom(json, start + 1); at >= 0; at = quoteFrom(json, at + 1)) {
    let backslashes = 0;
    while (bytes[at - 1 - backslashes] === BACKSLASH) backslashes++;
    // An even number of them are themselves escaped.
    if (backslashes % 2 === 0) return at + 1;
  }
  return bytes.length;
}

function quoteFrom({ bytes, ascii }: JsonText, from: number): number {
  return ascii === undefined ? bytes.indexOf(QUOTE, from) : ascii.indexOf('"', from);
}
