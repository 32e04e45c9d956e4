/** Reads a form with a file: what the router must know of it at once, all of it into a spool. */
import type { IncomingMessage } from "node:http";
import { logger } from "@heddle/common/log";
import { boundaryOf } from "../../core/form/content_type.ts";
import { FormScanner } from "../../core/form/form_scan.ts";
import type { Form } from "../../core/form/form_request.ts";
import { next, refuse, type Step } from "../../core/request/outcome.ts";
import { codingOf, CODINGS_TOLD } from "../body/body_reader.ts";
import { PackedError, plainBody } from "./packed_body.ts";
import { type Spool, SpoolError, type SpoolRoom } from "./spool.ts";

/** A form, and its bytes, which go when it is disposed. */
export interface ReceivedForm extends Disposable {
  readonly kind: "form";
  readonly form: Form;
  readonly spool: Spool;
}

export interface FormLimits {
  readonly bytesMax: number;
  readonly room: SpoolRoom;
}

/** Never throws for what a client can do. A refused body is not read to its end. */
export async function readForm(
  request: IncomingMessage,
  limits: FormLimits,
): Promise<Step<ReceivedForm>> {
  const contentType = request.headers["content-type"] ?? "";
  const boundary = boundaryOf(contentType);
  if (boundary === undefined) {
    return invalid("Want a form: content-type multipart/form-data with its boundary");
  }
  const coding = codingOf(request);
  if (coding === undefined) {
    return refuse({ reason: "encoding_unsupported", message: CODINGS_TOLD });
  }
  if (Number(request.headers["content-length"] ?? 0) > limits.bytesMax) {
    return tooLarge(limits.bytesMax);
  }
  const spool = limits.room.open();
  let received: Step<ReceivedForm> | undefined;
  try {
    const { bytesMax } = limits;
    const body = plainBody(request, coding, bytesMax);
    received = await receive(body, { request, boundary, contentType, spool, bytesMax });
    return received;
  } finally {
    if (received?.kind !== "next") spool[Symbol.dispose]();
  }
}

interface Receiving {
  readonly request: IncomingMessage;
  readonly boundary: string;
  readonly contentType: string;
  readonly spool: Spool;
  readonly bytesMax: number;
}

async function receive(
  body: AsyncIterable<unknown>,
  { request, boundary, contentType, spool, bytesMax }: Receiving,
): Promise<Step<ReceivedForm>> {
  const scanner = new FormScanner(boundary);
  try {
    for await (const chunk of body) {
      if (!(chunk instanceof Uint8Array)) throw new TypeError("a body arrived decoded");
      if (spool.length + chunk.length > bytesMax) return tooLarge(bytesMax);
      const fault = scanner.push(chunk);
      if (fault !== undefined) return invalid(fault.detail);
      await spool.write(chunk);
    }
  } catch (error) {
    if (error instanceof SpoolError) return unkept(error);
    if (error instanceof PackedError) {
      return error.reason === "too_large"
        ? tooLarge(bytesMax)
        : refuse({ reason: "encoding_corrupt", message: error.message });
    }
    if (request.complete) throw error;
    return refuse({ reason: "body_cut", message: "The connection ended before the body did" });
  }
  const form = scanner.end();
  if (form.kind === "invalid") return invalid(form.detail);
  return next({
    kind: "form",
    form: { parts: form.parts, bytes: spool.length, contentType },
    spool,
    [Symbol.dispose]: () => spool[Symbol.dispose](),
  });
}

function unkept(error: SpoolError) {
  logger("router").warning("An upload was refused", { error });
  return refuse({
    reason: "upload_unkept",
    message: "There is no room for this upload now",
    retryAfterS: 5,
  });
}

function tooLarge(max: number) {
  return refuse({
    reason: "body_too_large",
    message: `The body is larger than ${Number((max / 2 ** 20).toFixed(1))} MiB`,
  });
}

function invalid(message: string) {
  return refuse({ reason: "invalid_request", message, unread: true });
}
