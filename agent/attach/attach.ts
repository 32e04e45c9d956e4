/**
 * Runs beside an engine that something else started, and tells control that it exists. It has no
 * authority over the engine, and nothing that fails here costs the engine anything.
 */
import { create } from "@bufbuild/protobuf";
import { logger } from "@heddle/common/log";
import { delay } from "@heddle/common/task";
import { VERSION } from "@heddle/common/version";
import { decodeAttachedState, encodeAttachedState } from "@heddle/proto/attached_state";
import { errorText } from "@heddle/proto/error";
import {
  type ClaimRequest,
  ClaimRequestSchema,
  type ClaimResponse,
} from "@heddle/proto/gen/attach";
import { type Lease, nextClaimAt, NO_LEASE, renewed, unanswered } from "../core/attach/lease.ts";
import { judgeNvlinks, type LinkJudgement } from "../core/attach/nvlinks.ts";
import { type AttachSettings, enginePort } from "../core/attach/settings.ts";
import { stagingClaim, stagingPlaces, type StagingReading } from "../core/attach/staging.ts";
import { healthAfter, startingHealth, type Told, toldOf } from "../core/attach/standing.ts";
import { type Card, lookAtCards, lookAtHealth, lookAtLinks, measure } from "../edge/attach/look.ts";
import type { NvidiaTool } from "../edge/hardware/nvidia_smi.ts";

const log = logger("agent", "attach");

/** Between two looks at the engine's health, in ms: a change is told at once, not at the renewal. */
const LOOK_MS = 5_000;

export interface AttachOptions {
  readonly settings: AttachSettings;
  readonly control: { claim(request: ClaimRequest): Promise<ClaimResponse> };
  /** In the order in which they are tried. */
  readonly nvidiaSmi: readonly NvidiaTool[];
  readonly du: readonly string[];
  readonly env: Parameters<typeof stagingPlaces>[1];
  /** Monotonic, in ms. */
  readonly now: () => number;
  readonly signal: AbortSignal;
}

/** Runs until `signal` aborts. Rejects only for a bug. */
export async function attach(options: AttachOptions): Promise<void> {
  const { settings, now, signal } = options;
  const finds = new Finds(options);
  const said = new Said();
  const instance = crypto.randomUUID();
  let health = startingHealth(settings.healthUrl !== undefined);
  let lease = NO_LEASE;
  let told: Told | undefined;
  while (!signal.aborted) {
    try {
      if (settings.healthUrl !== undefined) {
        health = healthAfter(health, await lookAtHealth(settings.healthUrl, signal));
      }
      const changed = told !== undefined && (told.state === "assembling") === health.ready;
      // A control that is away is not asked more often because the engine has come up.
      if (now() >= nextClaimAt(lease) || (changed && lease.answered)) {
        const links = health.ready ? await finds.links() : undefined;
        told = toldOf(health, links?.impairment);
        const request = await claimOf(options, { told, finds, links, instance });
        lease = await claim(options, request, { lease, said });
      }
    } catch (error) {
      if (signal.aborted) return;
      throw error;
    }
    const waitMs = Math.min(LOOK_MS, Math.max(0, nextClaimAt(lease) - now()));
    await delay(waitMs, signal);
  }
}

async function claim(
  { control, now }: AttachOptions,
  request: ClaimRequest,
  { lease, said }: { readonly lease: Lease; readonly said: Said },
): Promise<Lease> {
  // From before it was sent: control counts from when it came, so this never believes too long.
  const at = now();
  try {
    const answer = await control.claim(request);
    said.answered(answer);
    return renewed(at, Number(answer.leaseMs));
  } catch (error) {
    said.failed(errorText(error));
    return unanswered(lease, at);
  }
}

async function claimOf(
  { settings }: AttachOptions,
  { told, finds, links, instance }: {
    readonly told: Told;
    readonly finds: Finds;
    readonly links: LinkJudgement | undefined;
    readonly instance: string;
  },
): Promise<ClaimRequest> {
  const cards = await finds.cards();
  const staging = await finds.staging();
  const port = enginePort(settings);
  const [own = 0, ...others] = settings.nodes;
  return create(ClaimRequestSchema, {
    engineId: settings.engineId,
    deploymentId: settings.deploymentId,
    model: settings.model,
    provider: settings.provider,
    endpoint: settings.endpoint,
    ...(port === undefined ? {} : { enginePort: port }),
    apiKey: settings.apiKey,
    ...told,
    state: encodeAttachedState(told.state),
    nodes: [
      {
        index: own,
        hostId: settings.hostId,
        cards: [...cards ?? []],
        cardsRead: cards !== undefined,
        ...(links?.count === undefined ? {} : { nvlinks: links.count }),
      },
      // Of these nothing is known here but that they are there.
      ...others.map((index) => ({ index })),
    ],
    agentVersion: VERSION,
    agentInstance: instance,
    ...(staging === undefined ? {} : { staging }),
  });
}

/** What was found so far of the machine. */
class Finds {
  readonly #options: AttachOptions;
  #cards: readonly Card[] | undefined;
  #tool: NvidiaTool | undefined;
  #seen: LinkJudgement["seen"] = new Map();
  #staging: StagingReading | undefined;

  constructor(options: AttachOptions) {
    this.#options = options;
  }

  /** Undefined: there is an nvidia-smi, and it does not answer. Asked again until it did once. */
  async cards(): Promise<readonly Card[] | undefined> {
    if (this.#cards !== undefined) return this.#cards;
    const { nvidiaSmi, signal } = this.#options;
    const { tool, cards } = await lookAtCards(nvidiaSmi, signal);
    this.#tool = tool;
    this.#cards = cards;
    return cards;
  }

  /** Undefined: no reading. */
  async links(): Promise<LinkJudgement | undefined> {
    const cards = await this.cards();
    if (this.#tool === undefined || cards === undefined || cards.length === 0) return undefined;
    const statuses = await lookAtLinks(this.#tool, this.#options.signal);
    if (statuses === undefined) return undefined;
    const kinds = new Map(cards.map(({ uuid, name }) => [uuid, name]));
    const judged = judgeNvlinks(statuses, kinds, this.#seen);
    this.#seen = judged.seen;
    return judged;
  }

  async staging() {
    const { settings, env, du, now, signal } = this.#options;
    const places = stagingPlaces(settings.cacheDir, env);
    const reading = await measure(places, { du, now, signal });
    const claimed = stagingClaim(reading, this.#staging);
    this.#staging = reading;
    if (claimed === undefined) return undefined;
    const { bytes, bytesPerSecond, ...rest } = claimed;
    return {
      ...rest,
      ...(bytes === undefined ? {} : { bytes: BigInt(bytes) }),
      ...(bytesPerSecond === undefined ? {} : { bytesPerSecond: BigInt(bytesPerSecond) }),
    };
  }
}

/** Says in the log what changed, and only that. */
class Said {
  #last = "";

  answered({ state, published, waitingFor }: ClaimResponse): void {
    const word = decodeAttachedState(state);
    if (!this.#new(`${word} ${published} ${waitingFor}`)) return;
    if (published) log.info("Attached; routers have this engine", { state: word });
    else log.info("Attached; routers do not have this engine yet", { state: word, waitingFor });
  }

  failed(reason: string): void {
    if (!this.#new(`failed ${reason}`)) return;
    log.warning("Control did not take the claim; the engine goes on, and it is tried again", {
      reason,
    });
  }

  #new(text: string): boolean {
    if (text === this.#last) return false;
    this.#last = text;
    return true;
  }
}
