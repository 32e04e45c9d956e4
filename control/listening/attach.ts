/** Calls about attached engines: each goes to whoever leads at its beginning. */
import type { ServiceImpl } from "@connectrpc/connect";
import type { AttachService, JoinTokenService } from "@heddle/proto/gen/attach";
import type { Settings } from "../config.ts";
import { joinTokensRpc } from "../edge/attach/join_tokens.ts";
import { operatorName, type Realm } from "../edge/caller.ts";
import type { Store } from "../edge/store/store.ts";
import type { Seat } from "../seat.ts";

/** What agents beside attached engines call. */
export function attachOf(seat: Seat): ServiceImpl<typeof AttachService> {
  const leader = () => seat.demand("unavailable").attach;
  return {
    join: (request, context) => leader().join(request, context),
    claim: (request, context) => leader().claim(request, context),
  };
}

/** What operators call to let engines attach. */
export function joinTokensOf(
  { cluster, issuing, tls, join }: Settings,
  { seat, realm, store }: {
    readonly seat: Seat;
    readonly realm: Realm;
    readonly store: Store;
  },
): ServiceImpl<typeof JoinTokenService> {
  return joinTokensRpc({
    cluster,
    issuing,
    caFile: tls?.ca_file,
    joinable: join !== undefined,
    by(context) {
      seat.demand("failed_precondition");
      return operatorName(context, realm);
    },
    record: (audit) => store.persist([audit]),
    now: Date.now,
  });
}
