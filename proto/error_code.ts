/** The mapping between Heddle's error codes and Connect's, both ways, in one place. */
import { Code, ConnectError } from "@connectrpc/connect";
import { type ErrorCode, errorText, HeddleError } from "./error.ts";

/** What an error code becomes on the wire. */
export function connectCode(code: ErrorCode): Code {
  switch (code) {
    case "invalid_input":
      return Code.InvalidArgument;
    case "not_found":
      return Code.NotFound;
    case "permission_denied":
      return Code.PermissionDenied;
    case "unauthenticated":
      return Code.Unauthenticated;
    case "exhausted":
      return Code.ResourceExhausted;
    case "failed_precondition":
      return Code.FailedPrecondition;
    case "unavailable":
      return Code.Unavailable;
    case "timeout":
      return Code.DeadlineExceeded;
    case "protocol":
      return Code.DataLoss;
    case "system":
      return Code.Unknown;
  }
}

/** What a code from the wire means here. Codes we never send count as `unavailable` or `protocol`. */
function errorCode(code: Code): ErrorCode {
  switch (code) {
    case Code.InvalidArgument:
    case Code.OutOfRange:
      return "invalid_input";
    case Code.NotFound:
      return "not_found";
    case Code.PermissionDenied:
      return "permission_denied";
    case Code.Unauthenticated:
      return "unauthenticated";
    case Code.ResourceExhausted:
      return "exhausted";
    case Code.FailedPrecondition:
    case Code.AlreadyExists:
    case Code.Aborted:
      return "failed_precondition";
    case Code.DeadlineExceeded:
      return "timeout";
    case Code.Unavailable:
    case Code.Canceled:
      return "unavailable";
    case Code.DataLoss:
    case Code.Unimplemented:
      return "protocol";
    case Code.Internal:
    case Code.Unknown:
      return "system";
  }
}

/** A HeddleError for whatever an RPC threw; `action` begins the message. */
export function fromRpc(error: unknown, action: string): HeddleError {
  if (error instanceof HeddleError) return error;
  const connect = ConnectError.from(error);
  return new HeddleError(errorCode(connect.code), `${action}: ${connect.rawMessage}`, {
    cause: error,
  });
}

/**
 * What a client is told of `error`. Only HeddleErrors and ConnectErrors speak to clients; anything
 * else is a bug and becomes "internal error".
 */
export function toRpc(error: unknown): ConnectError {
  if (error instanceof ConnectError) return error;
  if (error instanceof HeddleError) {
    return new ConnectError(error.message, connectCode(error.code), undefined, undefined, error);
  }
  return new ConnectError("internal error", Code.Internal, undefined, undefined, errorText(error));
}
