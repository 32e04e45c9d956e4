/** What the tables of nodes and replicas say of engines that something else started. */
import { formatDurationMs } from "@heddle/common/duration";
import { decodeAttachedState } from "@heddle/proto/attached_state";
import type { AttachedView } from "@heddle/proto/gen/attach";

/** "attached: serving"; undefined for what Heddle started. */
export function attachedState(attached: AttachedView | undefined): string | undefined {
  return attached && `attached: ${decodeAttachedState(attached.state)}`;
}

/** Its cards, none of which is free; undefined for a node of Heddle's. */
export function attachedCards(attached: AttachedView | undefined): string | undefined {
  return attached && (attached.cards === undefined ? "unknown" : `0/${attached.cards}`);
}

/** Where it is, and what is known of its links and weights; undefined for what Heddle started. */
export function attachedOn(attached: AttachedView | undefined): string | undefined {
  if (attached === undefined) return undefined;
  const { provider, hostId, nvlinks, staging, leaseLeftMs } = attached;
  return [
    `on ${provider === "" ? "a provider not told" : provider}`,
    hostId === "" ? "host not told" : `host ${hostId}`,
    nvlinks && `${nvlinks.up}/${nvlinks.expected} NVLinks`,
    staging && stagingWords(staging),
    leaseLeftMs === 0n ? "lease ended" : `lease ${formatDurationMs(Number(leaseLeftMs))}`,
  ].filter((part) => part !== undefined).join(", ");
}

function stagingWords(
  { directory, bytes, bytesPerSecond, unavailable }: NonNullable<AttachedView["staging"]>,
): string {
  if (bytes === undefined) return `weights in ${directory} cannot be read: ${unavailable}`;
  const rate = bytesPerSecond === undefined ? "" : `, ${gib(bytesPerSecond)} a second`;
  return `weights ${gib(bytes)}${rate}`;
}

function gib(bytes: bigint): string {
  const mib = Number(bytes) / 2 ** 20;
  return mib < 1_024 ? `${mib.toFixed(0)} MiB` : `${(mib / 1_024).toFixed(1)} GiB`;
}
