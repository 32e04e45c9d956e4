/** How far this node is with the engines that control wants, as wire messages. */
import { create } from "@bufbuild/protobuf";
import {
  type EngineInstalls,
  EngineInstallSchema,
  EngineInstallsSchema,
} from "@heddle/proto/gen/engines";
import { encodeInstallState } from "@heddle/proto/install_state";

export interface ToldInstall {
  readonly name: string;
  readonly version: string;
  readonly state: "waiting" | "installing" | "installed" | "failed";
  readonly progress: string;
  readonly reason: string;
  readonly message: string;
  readonly retryInMs: number | undefined;
  readonly wanted: boolean;
}

export function encodeInstalls(told: readonly ToldInstall[]): EngineInstalls {
  return create(EngineInstallsSchema, {
    installs: told.map(({ state, retryInMs, ...rest }) =>
      create(EngineInstallSchema, {
        ...rest,
        state: encodeInstallState(state),
        ...(retryInMs === undefined ? {} : { retryInMs: BigInt(Math.round(retryInMs)) }),
      })
    ),
  });
}
