/** Reads what an agent beside an attached engine says, and refuses what nobody could act on. */
import { formatAddress, isLoopback, parseAddress } from "@heddle/common/address";
import { decodeAttachedState, TOLD_STATES } from "@heddle/proto/attached_state";
import { HeddleError } from "@heddle/proto/error";
import type { ClaimRequest } from "@heddle/proto/gen/attach";
import type { AttachedClaim } from "../../core/attach/attached.ts";

/** Providers' ids are numbers, UUIDs and names such as "i-0abc" or "pod:7". */
const ENGINE_ID = /^[A-Za-z0-9](?:[A-Za-z0-9._:-]{0,126}[A-Za-z0-9])?$/;
const TEXT_CHARS_MAX = 500;
const KEY_CHARS_MAX = 4_096;
const NODES_MAX = 1_024;
const CARDS_MAX = 64;

/**
 * The claim as control keeps it. Throws `invalid_input`. An address that means the machine it is
 * said on is taken only from an agent that `isNear`, on loopback itself.
 */
export function decodeClaim(request: ClaimRequest, isNear: boolean): AttachedClaim {
  const { deploymentId: _certified, $typeName, $unknown, ...claim } = request;
  void $typeName;
  void $unknown;
  if (!ENGINE_ID.test(claim.engineId)) {
    refuse(
      claim.engineId,
      'its name is not one: want HEDDLE_ENGINE_ID with 1 to 128 letters, digits, ".", "_", ":" and "-"',
    );
  }
  const word = decodeAttachedState(claim.state);
  const state = TOLD_STATES.find((each) => each === word);
  if (state === undefined) {
    refuse(
      claim.engineId,
      `an agent cannot say that it is ${word}: want ${TOLD_STATES.join(", ")}`,
    );
  }
  const texts = [claim.model, claim.provider, claim.reason, claim.message, claim.agentVersion];
  const long = [...texts, claim.endpoint, claim.agentInstance, claim.staging?.directory ?? ""]
    .concat(claim.nodes.map(({ hostId }) => hostId))
    .find((text) => text.length > TEXT_CHARS_MAX);
  if (long !== undefined || claim.apiKey.length > KEY_CHARS_MAX) {
    refuse(claim.engineId, `a text of it is longer than ${TEXT_CHARS_MAX} characters`);
  }
  demandNodes(claim.engineId, claim.nodes);
  return { ...claim, state, endpoint: endpointOf(claim.engineId, claim.endpoint, isNear) };
}

function demandNodes(engine: string, nodes: ClaimRequest["nodes"]): void {
  if (nodes.length === 0 || nodes.length > NODES_MAX) {
    refuse(engine, `it has ${nodes.length} nodes; want 1 to ${NODES_MAX}`);
  }
  if (new Set(nodes.map(({ index }) => index)).size < nodes.length) {
    refuse(engine, "a node of it is named twice: want different numbers in HEDDLE_NODE_INDEX");
  }
  if (nodes.some(({ cards }) => cards.length > CARDS_MAX)) {
    refuse(engine, `a node of it has more than ${CARDS_MAX} cards`);
  }
}

function endpointOf(engine: string, text: string, isNear: boolean): string {
  if (text === "") return "";
  if (/^https:/i.test(text)) {
    refuse(engine, "routers speak plain HTTP to engines: want host:port in a network of your own");
  }
  try {
    const address = parseAddress(text.replace(/^http:\/\//i, "").replace(/\/$/, ""));
    if (!isNear && isOwn(address.host)) {
      refuse(engine, `${text} means each machine itself: want an address that routers reach`);
    }
    return formatAddress(address);
  } catch (error) {
    if (error instanceof HeddleError && error.message.includes("engine")) throw error;
    return refuse(
      engine,
      `cannot read its endpoint "${text}": want host:port, or http://host:port`,
    );
  }
}

/** Loopback, every address, and link-local ones, behind which clouds have what is nobody's business. */
function isOwn(host: string): boolean {
  return isLoopback(host) || /^(?:0\.0\.0\.0|::|169\.254\.|fe80:)/i.test(host);
}

function refuse(engine: string, why: string): never {
  throw new HeddleError("invalid_input", `Cannot attach engine "${engine}": ${why}`);
}
