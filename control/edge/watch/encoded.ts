/**
 * A message that was encoded once and is sent to many. Connect encodes every message for every
 * stream, which for a snapshot of 100,000 endpoints and 50 routers is minutes of work. Protobuf
 * copies fields that it does not know byte for byte; so the bytes go in as one field that the
 * message seems not to know, and sending is a copy.
 */
import { create, toBinary } from "@bufbuild/protobuf";
import { BinaryReader } from "@bufbuild/protobuf/wire";
import { type WatchResponse, WatchResponseSchema } from "@heddle/proto/gen/router";

/** Gives a message with the same bytes on the wire. Only binary encoding sees what is inside. */
export function encodeOnce(message: WatchResponse): WatchResponse {
  return withEncoded(create(WatchResponseSchema), toBinary(WatchResponseSchema, message));
}

/** `message` with the fields that `bytes` encode, which it must not have itself. */
export function withEncoded(message: WatchResponse, bytes: Uint8Array): WatchResponse {
  if (bytes.length === 0) return message;
  const reader = new BinaryReader(bytes);
  const [no, wireType] = reader.tag();
  // What follows the first tag, further fields included, is written out as it stands.
  message.$unknown = [{ no, wireType, data: bytes.subarray(reader.pos) }];
  return message;
}
