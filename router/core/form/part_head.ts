/** Reads what stands above a part of a form: its name, and whether it is a file. */

export interface PartHead {
  readonly kind: "part";
  readonly name: string;
  readonly isFile: boolean;
}

type Read = PartHead | { readonly kind: "invalid"; readonly detail: string };

/** `name=token` or `name="text"`, with the semicolon before it. */
const PARAMETER = /^;[ \t]*([A-Za-z*]+)=(?:"((?:[^"\\]|\\[^"])*)"|([^\s";,\\]+))[ \t]*/;

/** `bytes` with their empty line. */
export function readPartHead(bytes: Uint8Array): Read {
  const lines = new TextDecoder().decode(bytes).split("\r\n").filter((line) => line !== "");
  let disposition: string | undefined;
  for (const line of lines) {
    const colon = line.indexOf(":");
    const field = line.slice(0, colon).toLowerCase();
    if (colon <= 0 || /[^!-9;-~]/.test(field)) return invalid("A part's head has a broken line");
    const value = line.slice(colon + 1).trim();
    if (field === "content-disposition") {
      if (disposition !== undefined) return invalid("A part of the form has two names");
      disposition = value;
    }
    // Some parsers decode such parts and others do not.
    if (field === "content-transfer-encoding" && !/^(?:7bit|8bit|binary)$/i.test(value)) {
      return invalid("A part of the form is encoded: send its bytes as they are");
    }
  }
  return disposition === undefined
    ? invalid("A part of the form has no Content-Disposition")
    : readDisposition(disposition);
}

function readDisposition(text: string): Read {
  const kind = /^form-data[ \t]*/i.exec(text);
  if (kind === null) return invalid("A part's Content-Disposition is not form-data");
  const parameters = new Map<string, string>();
  let rest = text.slice(kind[0].length);
  while (rest !== "") {
    const match = PARAMETER.exec(rest);
    if (match === null) return invalid("A part's Content-Disposition cannot be read");
    const name = (match[1] ?? "").toLowerCase();
    if (parameters.has(name)) return invalid("A part's Content-Disposition repeats itself");
    parameters.set(name, match[2] ?? match[3] ?? "");
    rest = rest.slice(match[0].length);
  }
  const name = parameters.get("name");
  if (name === undefined || parameters.has("name*")) {
    return invalid("A part of the form has no plain name");
  }
  // Parsers differ on what a backslash or a percent sign means in a name.
  if (/[\\%]/.test(name)) return invalid("A part's name has an escape in it");
  return {
    kind: "part",
    name,
    isFile: parameters.has("filename") || parameters.has("filename*"),
  };
}

function invalid(detail: string): Read {
  return { kind: "invalid", detail };
}
