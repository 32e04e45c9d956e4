/** How one try at an endpoint ended. */
import type { ResponseSoFar } from "../../core/engine_error_shape.ts";
import type { Work } from "../../core/request/attempt_usage.ts";
import type { Failure } from "./failure.ts";

export type Relayed =
  /** The client has its whole answer. */
  | { readonly kind: "served"; readonly work: Work }
  /** Nothing of substance went to the client: another endpoint may take over. */
  | { readonly kind: "failed"; readonly failure: Failure; readonly work: Work }
  /** Content went out before it failed; the client was told by an error event. */
  | {
    readonly kind: "broken";
    readonly failure: Failure;
    readonly work: Work;
    /** What a Responses stream told of its answer before that. */
    readonly response: ResponseSoFar | undefined;
  }
  | { readonly kind: "client_closed"; readonly work: Work };
