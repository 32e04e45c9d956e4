/** Is there, by what control says, anything that could serve? */
import type { Fleet } from "../status/fleet_status.ts";
import { catalogConcerns, statusOf } from "../status/fleet_status.ts";
import { plural } from "../status/plural.ts";
import { servingConcerns } from "../status/serving_concerns.ts";
import { type Check, failed, ok, warning } from "./check.ts";

/** Of what serves and is not well, as much as is told; `heddle status --json` has the rest. */
const SERVING_SHOWN = 12;

/**
 * One check each for control's catalog, nodes, routers and models, and one for each replica, engine
 * and fetch that is not well.
 */
export function checkFleet(fleet: Fleet): readonly Check[] {
  return [
    checkSettled(fleet),
    checkCatalog(fleet),
    checkNodes(fleet),
    checkRouters(fleet),
    ...checkModels(fleet),
    ...checkServing(fleet),
  ];
}

function checkSettled({ version }: Fleet): Check {
  return version.settled ? ok("settled", "control knows what runs") : warning(
    "settled",
    "control waits for the nodes it knows before it starts or withdraws anything",
    "wait a minute; heddle nodes shows who is missing",
  );
}

function checkCatalog({ catalog }: Fleet): Check {
  const [concern] = catalogConcerns(catalog);
  if (concern !== undefined) return warning("catalog", concern.what, concern.next);
  const { file, fileState, revision, models } = catalog;
  const from = fileState === "applied" ? `, as in ${file}` : "";
  return ok("catalog", `revision ${revision} with ${plural(models, "model")}${from}`);
}

function checkNodes(fleet: Fleet): Check {
  const { nodes, gpus } = statusOf(fleet);
  const ready = nodes["ready"] ?? 0;
  if (fleet.nodes.length === 0) {
    return failed("nodes", "none has registered", "start heddle-agent on one: docs/agent.md");
  }
  const detail = `${ready} of ${fleet.nodes.length} ready, ${gpus.free} of ${
    plural(gpus.all, "GPU")
  } free`;
  if (ready === 0) return failed("nodes", detail, "heddle nodes says why");
  const well = ready === fleet.nodes.length && gpus.unusable === 0;
  return well ? ok("nodes", detail) : warning("nodes", detail, "heddle status names what is wrong");
}

function checkRouters({ routers }: Fleet): Check {
  const leased = routers.filter((router) => router.leased);
  const detail = `${leased.length} of ${plural(routers.length, "router")} ${
    routers.length === 1 ? "reports" : "report"
  }`;
  if (leased.length === 0) {
    return failed("routers", detail, "is heddle-router@1 running, and can it reach control?");
  }
  return leased.every((router) => router.current)
    ? ok("routers", detail)
    : warning("routers", `${detail}; not all have what control published`, "heddle routers");
}

function checkModels({ models }: Fleet): readonly Check[] {
  if (models.length === 0) {
    return [failed("models", "the catalog has none", "docs/catalog.md says how to declare one")];
  }
  const short = models.filter((model) => model.readyReplicas < model.desiredReplicas);
  const serving = models.filter((model) => model.readyReplicas + model.attachedEngines > 0);
  const summary = `${serving.length} of ${plural(models.length, "model")} serving`;
  const next = short.length === 0 ? "" : `heddle explain ${short[0]?.name}`;
  return [
    serving.length > 0 ? ok("models", summary) : failed("models", summary, next),
    ...short.map((model) => {
      const why = model.reason === "" ? "" : `: ${model.reason}`;
      return warning(
        `model ${model.name}`,
        `${model.readyReplicas} of ${plural(model.desiredReplicas, "replica")} ready${why}`,
        `heddle explain ${model.name}`,
      );
    }),
  ];
}

function checkServing(fleet: Fleet): readonly Check[] {
  const concerns = servingConcerns(fleet);
  const more = concerns.length - SERVING_SHOWN;
  return [
    ...concerns.slice(0, SERVING_SHOWN).map(({ subject, what, next }) =>
      warning(subject, what, next)
    ),
    ...(more <= 0 ? [] : [
      warning("serving", `${plural(more, "more thing")} to look at`, "heddle status --json"),
    ]),
  ];
}
