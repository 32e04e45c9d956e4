/** `ctl doctor`: everything between this terminal and a served token, in order. */
import { createClient, type Transport } from "@connectrpc/connect";
import { buildCommand } from "@stricli/core";
import { AdminService } from "@heddle/proto/gen/admin";
import { formatDurationMs } from "@heddle/common/duration";
import { readTlsFiles, type TlsMaterial } from "@heddle/common/mtls_files";
import { VERSION } from "@heddle/common/version";
import { errorText, HeddleError } from "@heddle/proto/error";
import {
  COMMON_FLAGS,
  type CtlContext,
  FORM_ALIASES,
  FORM_FLAGS,
  type FormFlags,
} from "../command.ts";
import { formatRecord, screenForm } from "../live/screen.ts";
import { CALL_TIMEOUT_MS, SEE_DOCTOR, withTransport } from "../client.ts";
import { type Context, isWhole } from "../config.ts";
import { checkCertificate } from "../doctor/certificate.ts";
import { type Check, failed, ok, warning } from "../doctor/check.ts";
import { checkClock, type Told } from "../doctor/clock.ts";
import { checkEndpoint } from "../doctor/endpoint.ts";
import { checkFleet } from "../doctor/fleet.ts";
import { type Endpoint, ENDPOINT_FLAGS, type EndpointFlags, endpointOf } from "../endpoint.ts";
import { fetchFleet, type Fleet } from "../status/fleet_status.ts";
import { visible } from "../table.ts";

interface DoctorFlags extends EndpointFlags, FormFlags {}

const MARKS = { ok: "ok", warning: "look", failed: "FAILED" } as const;

export const doctor = buildCommand({
  docs: {
    brief: "Check everything between this terminal and a served token",
    fullDescription:
      "Goes from the configuration over control to one token of one model, and says " +
      "what is wrong and what to do next. Exits with 1 when something failed.",
  },
  parameters: {
    flags: {
      ...COMMON_FLAGS,
      ...ENDPOINT_FLAGS,
      ...FORM_FLAGS,
    },
    aliases: FORM_ALIASES,
  },
  async func(this: CtlContext, flags: DoctorFlags) {
    const form = screenForm(flags);
    const checks: Check[] = [];
    for await (const check of examine(this, flags)) {
      checks.push(check);
      if (form === "table") this.io.out(formatCheck(check));
    }
    if (form !== "table") this.io.out(formatRecord(form, checks));
    if (checks.some(({ state }) => state === "failed")) this.fail();
  },
});

/** One line, and where there is something to do a second one. */
export function formatCheck({ name, state, detail, next }: Check): string {
  const line = `${MARKS[state].padEnd(8)}${visible(`${name}: ${detail}`)}\n`;
  return next === "" ? line : `${line}        → ${visible(next)}\n`;
}

/** In order; what depends on something that failed is not looked at. */
async function* examine(ctl: CtlContext, flags: DoctorFlags): AsyncGenerator<Check> {
  let context: Context;
  try {
    context = await ctl.loadContext(flags);
  } catch (error) {
    yield failed("configuration", errorText(error), "docs/ctl.md says what it looks like");
    return;
  }
  yield ok(
    "configuration",
    `context ${context.name}, control at ${[context.url].flat().join(", ")}`,
  );
  // With a token there is none to look at.
  if (context.tls !== undefined && isWhole(context.tls)) {
    let material: TlsMaterial;
    try {
      material = await readTlsFiles(context.tls);
      yield checkCertificate(material, Date.now());
    } catch (error) {
      yield failed("certificate", errorText(error), "heddle ca request and sign make one");
      return;
    }
  }
  const fleet = yield* checkControl(context);
  if (fleet !== undefined) yield* checkFleet(fleet);
  yield* clientSide(ctl, flags, { context, fleet });
}

async function* checkControl(context: Context): AsyncGenerator<Check, Fleet | undefined> {
  const startedAt = performance.now();
  try {
    const [told, fleet] = await withTransport(
      context,
      async (transport) => [await timeOf(transport), await fetchFleet(transport)] as const,
    );
    const { name, version } = fleet.version;
    const took = formatDurationMs(Math.round(performance.now() - startedAt));
    const detail = `${name || "control"} ${version} answered in ${took}`;
    yield version === VERSION ? ok("control", detail) : warning(
      "control",
      `${detail}; this heddle is ${VERSION}`,
      "use the heddle of control's version",
    );
    const clock = checkClock(told);
    if (clock !== undefined) yield clock;
    return fleet;
  } catch (error) {
    yield failed("control", errorText(error).replace(SEE_DOCTOR, ""), nextOf(error));
    return undefined;
  }
}

async function timeOf(transport: Transport): Promise<Told> {
  let said = "";
  const askedAt = Date.now();
  await createClient(AdminService, transport).getVersion({}, {
    timeoutMs: CALL_TIMEOUT_MS,
    onHeader: (headers) => said = headers.get("date") ?? "",
  });
  return { askedAt, answeredAt: Date.now(), saidAt: Date.parse(said) };
}

/** Who was refused, or trusts nobody, has reached something. */
function nextOf(error: unknown): string {
  const code = error instanceof HeddleError ? error.code : undefined;
  if (code === "unauthenticated") {
    return "compare this context's tls or token_file with the cluster's: heddle config show";
  }
  return code === "permission_denied"
    ? "ask for a certificate or a token that may: heddle ca sign, heddle ca token"
    : "is heddle-control running there? journalctl -u heddle-control";
}

/** The way that clients go; it may be well while control is not. */
async function* clientSide(
  ctl: CtlContext,
  flags: DoctorFlags,
  known: { readonly context: Context; readonly fleet: Fleet | undefined },
): AsyncGenerator<Check> {
  if ((flags.endpoint ?? known.context.endpoint) === undefined) {
    yield warning(
      "endpoint",
      "not looked at: nothing says where clients ask",
      "give --endpoint URL, or endpoint.url in ctl's configuration",
    );
    return;
  }
  let endpoint: Endpoint;
  try {
    endpoint = await endpointOf(ctl, flags);
  } catch (error) {
    yield failed("endpoint", errorText(error), "the key file lies beside ctl's configuration");
    return;
  }
  const serving = known.fleet?.models.find((model) =>
    model.readyReplicas + model.attachedEngines > 0
  )?.name;
  yield* checkEndpoint(endpoint, serving, ctl.signal);
}
