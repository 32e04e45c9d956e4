/** Turns control's commands into the supervisor's words, and its verdicts into answers. */
import type { ConnectRequest, StartShard, StopShard } from "@heddle/proto/gen/agent";
import { decodeRevision } from "@heddle/proto/revision";
import type { Verdict } from "./core/accept.ts";
import { encodeAbsent, encodeResult, encodeStatus } from "./edge/session/encode.ts";
import type { Supervisor } from "./supervisor.ts";

type Answer = Extract<
  ConnectRequest["message"],
  { case: "commandResult" } | { case: "shardStatus" }
>;

export interface CommandsOptions {
  readonly supervisor: Supervisor;
  readonly onVerdict: (command: "start_shard" | "stop_shard", verdict: Verdict) => void;
}

export class Commands {
  readonly #options: CommandsOptions;

  constructor(options: CommandsOptions) {
    this.#options = options;
  }

  /** The result, and the shard's status when it was started before: the last one may be lost. */
  async startShard(message: StartShard): Promise<readonly Answer[]> {
    const { supervisor, onVerdict } = this.#options;
    const revision = decodeRevision(message.revision);
    if (message.spec === undefined) {
      const verdict = {
        kind: "refused",
        reason: "invalid_spec",
        detail: "The command has no spec",
      } as const;
      onVerdict("start_shard", verdict);
      return [result({ shardId: "", revision }, verdict)];
    }
    const { shardId } = message.spec;
    const verdict = await supervisor.start({ spec: message.spec, revision });
    onVerdict("start_shard", verdict);
    const answer = result({ shardId, revision }, verdict);
    return verdict.kind === "done" ? [answer, ...this.#status(shardId)] : [answer];
  }

  async stopShard(message: StopShard): Promise<readonly Answer[]> {
    const { supervisor, onVerdict } = this.#options;
    const { shardId, reason, graceMs } = message;
    const revision = decodeRevision(message.revision);
    const verdict = await supervisor.stop({ shardId, revision, reason, graceMs });
    onVerdict("stop_shard", verdict);
    const answer = result({ shardId, revision }, verdict);
    if (verdict.kind === "refused") return [answer];
    if (supervisor.find(shardId) !== undefined) return [answer, ...this.#status(shardId)];
    return [answer, { case: "shardStatus", value: encodeAbsent(shardId, revision, reason) }];
  }

  #status(shardId: string): readonly Answer[] {
    return this.#options.supervisor.statuses()
      .filter(({ shard }) => shard.spec.shardId === shardId)
      .map(({ shard, status }) => ({ case: "shardStatus", value: encodeStatus(shard, status) }));
  }
}

function result(
  command: { readonly shardId: string; readonly revision: ReturnType<typeof decodeRevision> },
  verdict: Verdict,
): Answer {
  return { case: "commandResult", value: encodeResult(command, verdict) };
}
