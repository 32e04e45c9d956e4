/** What the API part knows about the engine that it fronts. */
import { RequestError } from "./request_error.ts";

export interface ServedModel {
  /** The weights' path or repository, as given on the command line. */
  readonly root: string;
  /** The first is what metrics are labelled with. */
  readonly names: readonly [string, ...string[]];
  readonly contextTokensMax: number;
  readonly seed: number;
  /** Length that an answer takes by itself. */
  readonly answerTokensMin: number;
  readonly answerTokensMax: number;
  readonly embeddingDimensions: number;
  readonly logprobsMax: number;
  readonly choicesMax: number;
  readonly imagesMax: number;
  readonly autoToolChoice: boolean;
  readonly promptTokensDetails: boolean;
  readonly forceIncludeUsage: boolean;
  readonly generates: boolean;
  readonly embeds: boolean;
}

/** The name an answer carries: the one that was asked for. @throws RequestError 404 for a name not served. */
export function resolveName(model: ServedModel, asked: string | null | undefined): string {
  if (asked === null || asked === undefined || asked === "") return model.names[0];
  if (model.names.includes(asked)) return asked;
  throw new RequestError(404, `The model \`${asked}\` does not exist.`, "model");
}

/** The body of /v1/models, or one card of it. `created` in Unix seconds. */
export function modelCards(model: ServedModel, created: number): readonly ModelCard[] {
  return model.names.map((id) => ({
    id,
    object: "model",
    created,
    owned_by: "heddle-sim",
    root: model.root,
    parent: null,
    max_model_len: model.contextTokensMax,
  }));
}

export interface ModelCard {
  readonly id: string;
  readonly object: "model";
  readonly created: number;
  readonly owned_by: string;
  readonly root: string;
  readonly parent: null;
  readonly max_model_len: number;
}
