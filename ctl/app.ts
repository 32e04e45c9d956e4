/** The tree of commands: nouns in the plural with their verbs, and short forms of the daily ones. */
import {
  type ArgumentParseError,
  ArgumentScannerError,
  buildApplication,
  buildRouteMap,
  ExitCode,
  formatMessageForArgumentScannerError,
  text_en,
} from "@stricli/core";
import { errorText } from "@heddle/proto/error";
import { VERSION } from "@heddle/common/version";
import { createJoinToken } from "./commands/attach/join_token.ts";
import { init } from "./commands/ca/init.ts";
import { issue } from "./commands/ca/issue.ts";
import { rotate } from "./commands/ca/rotate.ts";
import { strike, struck } from "./commands/ca/strike.ts";
import { token } from "./commands/ca/token.ts";
import { request } from "./commands/ca/request.ts";
import { sign } from "./commands/ca/sign.ts";
import { status as certificates } from "./commands/ca/status.ts";
import { listAudit } from "./commands/audit.ts";
import { apply } from "./commands/catalog/apply.ts";
import { plan } from "./commands/catalog/plan.ts";
import { showCatalog } from "./commands/catalog/show.ts";
import { listDecisions } from "./commands/decisions.ts";
import { bench } from "./commands/capacity/bench_model.ts";
import { capacity } from "./commands/capacity/capacity.ts";
import { listContexts } from "./commands/config/list.ts";
import { showContext } from "./commands/config/show.ts";
import { selectContext } from "./commands/config/use.ts";
import { doctor } from "./commands/doctor.ts";
import { listEngines } from "./commands/engines.ts";
import { explain } from "./commands/explain.ts";
import { events } from "./commands/live/events.ts";
import { top } from "./commands/live/top.ts";
import { logs } from "./commands/logs.ts";
import { pause, resume, retry } from "./commands/models/decide.ts";
import { listModels } from "./commands/models/list.ts";
import { scale } from "./commands/models/scale.ts";
import { cordon, uncordon } from "./commands/nodes/decide.ts";
import { drain } from "./commands/nodes/drain.ts";
import { forget } from "./commands/nodes/forget.ts";
import { label } from "./commands/nodes/label.ts";
import { listNodes } from "./commands/nodes/list.ts";
import { restart, stop } from "./commands/replicas/decide.ts";
import { listReplicas } from "./commands/replicas/list.ts";
import { completion } from "./commands/completion.ts";
import { listRouters } from "./commands/routers.ts";
import { status } from "./commands/status.ts";
import { TENANCY_ROUTES } from "./commands/tenancy/routes.ts";
import { version } from "./commands/version.ts";
import { inspectModel } from "./commands/weights/inspect.ts";
import { listWeights } from "./commands/weights/list.ts";
import { prefetchWeights } from "./commands/weights/prefetch.ts";
import { removeWeights } from "./commands/weights/remove.ts";

const root = buildRouteMap({
  docs: { brief: "Heddle's command line: see and steer what the fleet serves" },
  routes: {
    status,
    top,
    events,
    doctor,
    bench,
    capacity,
    nodes: buildRouteMap({
      docs: { brief: "Machines that run an agent" },
      defaultCommand: "list",
      routes: { list: listNodes, cordon, uncordon, drain, label, forget },
    }),
    models: buildRouteMap({
      docs: { brief: "What clients can ask for" },
      defaultCommand: "list",
      routes: { list: listModels, inspect: inspectModel, explain, pause, resume, scale, retry },
    }),
    replicas: buildRouteMap({
      docs: { brief: "Running copies of models" },
      defaultCommand: "list",
      routes: { list: listReplicas, logs, restart, stop },
    }),
    weights: buildRouteMap({
      docs: { brief: "What nodes fetched for models, and what they fetch" },
      defaultCommand: "list",
      routes: { list: listWeights, prefetch: prefetchWeights, remove: removeWeights },
    }),
    engines: listEngines,
    routers: listRouters,
    ...TENANCY_ROUTES,
    ca: buildRouteMap({
      docs: { brief: "Certificates: who may call itself what in this cluster" },
      routes: {
        init,
        request,
        sign,
        issue,
        rotate,
        strike,
        struck,
        token,
        status: certificates,
      },
    }),
    "join-tokens": buildRouteMap({
      docs: { brief: "What lets an engine that something else started attach" },
      routes: { create: createJoinToken },
    }),
    catalog: showCatalog,
    plan,
    apply,
    cordon,
    uncordon,
    drain,
    explain,
    logs,
    decisions: listDecisions,
    audit: listAudit,
    config: buildRouteMap({
      docs: { brief: "The clusters that this command line knows, and which one it talks to" },
      defaultCommand: "list",
      routes: { list: listContexts, show: showContext, use: selectContext },
    }),
    completion,
    version,
  },
});

/** The application that `main.ts` runs. */
export const app = buildApplication(root, {
  name: "heddle",
  versionInfo: { currentVersion: VERSION },
  scanner: { caseStyle: "allow-kebab-for-camel" },
  documentation: { caseStyle: "convert-camel-to-kebab" },
  // What a command finds wrong with its own arguments is called wrongly too.
  determineExitCode: (error) =>
    error instanceof SyntaxError ? ExitCode.InvalidArgument : ExitCode.CommandRunError,
  localization: {
    // The library would print the stack of what a command throws; operators get the sentence.
    loadText: () => ({
      ...text_en,
      exceptionWhileRunningCommand: errorText,
      exceptionWhileParsingArguments: wrongArgument,
    }),
  },
});

/** What is wrong with the command line. What a value is, is said once. */
function wrongArgument(error: unknown): string {
  if (!(error instanceof ArgumentScannerError)) return errorText(error);
  return formatMessageForArgumentScannerError(error, {
    ArgumentParseError(
      { externalFlagNameOrPlaceholder: name, input, exception }: ArgumentParseError,
    ) {
      const why = exception instanceof Error ? exception.message : String(exception);
      const told = input.split(",").some((part) => why.includes(`"${part.trim()}"`));
      return `Wrong value for ${name}: ${told ? why : `${why}, it is "${input}"`}`;
    },
  });
}
