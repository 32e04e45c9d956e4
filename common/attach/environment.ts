/**
 * What an agent beside an engine that something else started is told by its environment. These names
 * are read and written from here alone: by the agent, by the scripts that it prints, and by ctl.
 */

/** By what each says: the variable, and what it means. */
export const ATTACH_ENVIRONMENT = {
  engineId: {
    name: "HEDDLE_ENGINE_ID",
    meaning: "what this engine is called; unique within its deployment, and required",
  },
  deploymentId: {
    name: "HEDDLE_DEPLOYMENT_ID",
    meaning: "the deployment it belongs to; left out, the one of the join token",
  },
  model: {
    name: "HEDDLE_ENGINE_MODEL",
    meaning: "the name by which it lists its model; a name or an alias of the catalog",
  },
  provider: { name: "HEDDLE_PROVIDER", meaning: "who rents out the machine" },
  nodeIndex: {
    name: "HEDDLE_NODE_INDEX",
    meaning:
      "which node of the engine this is, from 0; 0-3 or 0,1 when this agent speaks for several",
  },
  controlUrl: {
    name: "HEDDLE_CONTROL_URL",
    meaning: "https://host:port of control's join port; several, separated by commas",
  },
  healthUrl: {
    name: "HEDDLE_ENGINE_HEALTH_URL",
    meaning: "answers 200 once the engine serves; left out, it counts as serving",
  },
  endpoint: {
    name: "HEDDLE_ENGINE_ENDPOINT",
    meaning: "host:port at which routers reach it; left out, the address that control sees",
  },
  hostId: {
    name: "HEDDLE_HOST_ID",
    meaning: "what the provider calls this machine; left out, it is reported as not told",
  },
  cacheDir: {
    name: "HEDDLE_ENGINE_CACHE_DIR",
    meaning: "folder where weights arrive; left out, the usual places are looked at",
  },
  apiKey: { name: "HEDDLE_ENGINE_API_KEY", meaning: "the key that the engine demands, if any" },
  joinToken: { name: "HEDDLE_JOIN_TOKEN", meaning: 'made by "heddle join-tokens create"' },
  joinTokenFile: {
    name: "HEDDLE_JOIN_TOKEN_FILE",
    meaning: "file with the join token, below /run/secrets or /etc/heddle",
  },
} as const;

export type AttachSetting = keyof typeof ATTACH_ENVIRONMENT;

/** What the scripts that start the agent are told, beside what they pass on. */
export const ATTACH_SCRIPT_ENVIRONMENT = {
  binaryUrl: {
    name: "HEDDLE_AGENT_BINARY_URL",
    meaning: "where the agent is fetched from, instead of where this build was published",
  },
  binarySha256: {
    name: "HEDDLE_AGENT_BINARY_SHA256",
    meaning: "SHA-256 of that file, in hexadecimal",
  },
} as const;

/** The settings that an environment has; what is empty is not told. */
export function readAttachEnvironment(
  get: (name: string) => string | undefined,
): Readonly<Partial<Record<AttachSetting, string>>> {
  const told: Partial<Record<AttachSetting, string>> = {};
  for (const setting of ATTACH_SETTINGS) {
    const value = get(ATTACH_ENVIRONMENT[setting].name)?.trim();
    if (value !== undefined && value !== "") told[setting] = value;
  }
  return told;
}

/** The environment that says these settings. */
export function writeAttachEnvironment(
  settings: Readonly<Partial<Record<AttachSetting, string>>>,
): Readonly<Record<string, string>> {
  const environment: Record<string, string> = {};
  for (const setting of ATTACH_SETTINGS) {
    const value = settings[setting];
    if (value !== undefined) environment[ATTACH_ENVIRONMENT[setting].name] = value;
  }
  return environment;
}

const ATTACH_SETTINGS: readonly AttachSetting[] = [
  "engineId",
  "deploymentId",
  "model",
  "provider",
  "nodeIndex",
  "controlUrl",
  "healthUrl",
  "endpoint",
  "hostId",
  "cacheDir",
  "apiKey",
  "joinToken",
  "joinTokenFile",
];
