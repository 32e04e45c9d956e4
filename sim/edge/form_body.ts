/** Reading a request that is a form with a file. */
import type { IncomingMessage } from "node:http";
import type { TranscriptionForm } from "../core/audio/transcription.ts";
import { RequestError } from "../core/openai/request_error.ts";
import { readBytes } from "./request_body.ts";

/** @throws RequestError 400 for what is no form. Rejects when the client goes away. */
export async function readForm(request: IncomingMessage): Promise<TranscriptionForm> {
  const type = request.headers["content-type"] ?? "";
  const bytes = await readBytes(request);
  let form: FormData;
  try {
    form = await new Response(bytes, { headers: { "content-type": type } }).formData();
  } catch (error) {
    throw new RequestError(400, `There was an error parsing the body: ${error}`);
  }
  const fields: Record<string, string> = {};
  let file: Uint8Array | undefined;
  for (const [name, value] of form.entries()) {
    if (typeof value === "string") fields[name] = value;
    else if (name === "file") file = await value.bytes();
  }
  return { fields, file };
}
