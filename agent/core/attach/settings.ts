/** What an agent beside an attached engine was told, checked before it does anything. */
import { ATTACH_ENVIRONMENT, type AttachSetting } from "@heddle/common/attach/environment";
import { HeddleError } from "@heddle/proto/error";

export interface AttachSettings {
  readonly engineId: string;
  readonly deploymentId: string;
  readonly model: string;
  readonly provider: string;
  /** Nodes that this agent speaks for, its own first. */
  readonly nodes: readonly number[];
  readonly controlUrls: readonly string[];
  /** Undefined: nobody says when the engine is ready, so it counts as serving. */
  readonly healthUrl: URL | undefined;
  readonly endpoint: string;
  readonly hostId: string;
  /** Undefined: the usual places are looked at. */
  readonly cacheDir: string | undefined;
  readonly apiKey: string;
  readonly joinToken: string | undefined;
  readonly joinTokenFile: string | undefined;
}

/** More nodes than any engine spans. */
const NODES_MAX = 1_024;

/** Reads what was told. Throws `invalid_input`, naming the variable. */
export function attachSettings(
  told: Readonly<Partial<Record<AttachSetting, string>>>,
): AttachSettings {
  const { healthUrl } = told;
  return {
    engineId: told.engineId ?? missing("engineId"),
    deploymentId: told.deploymentId ?? "",
    model: told.model ?? "",
    provider: told.provider ?? "",
    nodes: nodesOf(told.nodeIndex ?? "0"),
    controlUrls: (told.controlUrl ?? missing("controlUrl")).split(",").map((url) => url.trim())
      .filter((url) => url !== ""),
    healthUrl: healthUrl === undefined ? undefined : urlOf(healthUrl),
    endpoint: told.endpoint ?? "",
    hostId: told.hostId ?? "",
    cacheDir: told.cacheDir,
    apiKey: told.apiKey ?? "",
    joinToken: told.joinToken,
    joinTokenFile: told.joinTokenFile,
  };
}

/** The port on which the engine answers about its health; undefined: nobody said. */
export function enginePort({ healthUrl }: AttachSettings): number | undefined {
  if (healthUrl === undefined) return undefined;
  if (healthUrl.port !== "") return Number(healthUrl.port);
  return healthUrl.protocol === "https:" ? 443 : 80;
}

/** "0", "0,2" or "0-3". */
function nodesOf(text: string): readonly number[] {
  const nodes = text.split(",").flatMap((part) => {
    const [, first = "", last = first] = /^ *(\d{1,4})(?: *- *(\d{1,4}))? *$/.exec(part) ?? [];
    const count = Number(last) - Number(first) + 1;
    if (first === "" || count < 1 || count > NODES_MAX) return [NaN];
    return Array.from({ length: count }, (_, at) => Number(first) + at);
  });
  if (nodes.some(Number.isNaN) || new Set(nodes).size < nodes.length || nodes.length > NODES_MAX) {
    refuse("nodeIndex", `"${text}": want a number from 0, or several such as 0-3 or 0,1`);
  }
  return nodes;
}

function urlOf(text: string): URL {
  const url = URL.parse(text);
  if (url !== null && /^https?:$/.test(url.protocol)) return url;
  return refuse("healthUrl", `"${text}": want a URL such as http://127.0.0.1:8000/health`);
}

function missing(setting: AttachSetting): never {
  const { meaning } = ATTACH_ENVIRONMENT[setting];
  return refuse(setting, `it is not set; it says ${meaning}`);
}

function refuse(setting: AttachSetting, why: string): never {
  const { name } = ATTACH_ENVIRONMENT[setting];
  throw new HeddleError("invalid_input", `Cannot attach: ${name}: ${why}`);
}
