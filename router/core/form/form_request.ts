/**
 * Reads what the router must know of a form: the model, wherever it stands, and whether the answer
 * is to be streamed. The file goes on as it came.
 */
import type { BodyPiece, ParsedRequest, RequestPolicy } from "../request/request.ts";
import { isControlField } from "../policy/control_fields.ts";
import { next, refuse, type Step } from "../request/outcome.ts";
import type { InferenceRoute } from "../request/route.ts";
import type { FormPart } from "./form_scan.ts";

/** A form that has been received. */
export interface Form {
  readonly parts: readonly FormPart[];
  readonly bytes: number;
  /** With the boundary. */
  readonly contentType: string;
}

/** Sound of 16 kHz and 16 bits over the 50 tokens that a second of it has. */
const BYTES_PER_TOKEN = 640;

const TRUE = /^(?:true|t|yes|y|on|1)$/i;

export function parseForm(
  route: InferenceRoute,
  form: Form,
  policy: Pick<RequestPolicy, "controlFields">,
): Step<ParsedRequest> {
  const [model, another] = form.parts.filter(({ name }) => name === "model");
  if (model?.text === undefined || model.text === "" || another !== undefined) {
    return invalid('"model" must be one field with the name of a model', "model");
  }
  const streams = form.parts.filter(({ name }) => name === "stream");
  if (streams.length > 1) return invalid('"stream" stands twice', "stream");
  const control = form.parts.filter(({ name }) => isControlField(name));
  const [first] = control;
  if (first !== undefined && policy.controlFields === "refuse") {
    return invalid(`"${first.name}" is not for callers to set`, first.name);
  }
  const asked = model.text;
  const dropped = control.map(({ name }) => name).join(", ");
  return next({
    route,
    model: asked,
    stream: TRUE.test(streams[0]?.text?.trim() ?? ""),
    // Engines say it only to those who asked in the form.
    wantsUsage: true,
    embeddingEncoding: "float",
    promptTokensEstimate: Math.ceil(form.bytes / BYTES_PER_TOKEN),
    choices: 0,
    answerTokensMax: undefined,
    conversation: () => undefined,
    answerHeaders: dropped === "" ? {} : { "x-heddle-dropped": dropped },
    contentType: form.contentType,
    body: (servedName) =>
      pieces(form.bytes, [
        ...control.map(({ start, end }) => ({ start, end, text: "" })),
        ...(servedName === asked
          ? []
          : [{ start: model.bodyStart, end: model.bodyEnd, text: servedName }]),
      ]),
  });
}

interface Cut {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/** What was received, with each cut replaced by its text. */
function pieces(length: number, cuts: readonly Cut[]): readonly BodyPiece[] {
  const found: BodyPiece[] = [];
  let at = 0;
  for (const { start, end, text } of [...cuts].sort((a, b) => a.start - b.start)) {
    if (start > at) found.push({ start: at, end: start });
    if (text !== "") found.push(new TextEncoder().encode(text));
    at = end;
  }
  if (length > at) found.push({ start: at, end: length });
  return found;
}

function invalid(message: string, param: string) {
  return refuse({ reason: "invalid_request", message, param });
}
