/** A request that is refused, in vLLM's error shape. */

const TYPES: Readonly<Record<number, string>> = {
  400: "BadRequestError",
  401: "AuthenticationError",
  404: "NotFoundError",
  405: "MethodNotAllowedError",
  413: "RequestEntityTooLargeError",
  422: "UnprocessableEntityError",
  429: "RateLimitError",
  500: "InternalServerError",
  501: "NotImplementedError",
  503: "ServiceUnavailableError",
};

export interface ErrorBody {
  readonly error: {
    readonly message: string;
    readonly type: string;
    readonly param: string | null;
    readonly code: number;
  };
}

/** The error member of an answer or of a stream's event. */
export function errorBody(status: number, message: string, param: string | null = null): ErrorBody {
  return { error: { message, type: TYPES[status] ?? "Error", param, code: status } };
}

/** Thrown while a request is read; the server answers with its status and body. */
export class RequestError extends Error {
  readonly status: number;
  readonly param: string | null;

  constructor(status: number, message: string, param: string | null = null) {
    super(message);
    this.name = "RequestError";
    this.status = status;
    this.param = param;
  }

  get body(): ErrorBody {
    return errorBody(this.status, this.message, this.param);
  }
}
