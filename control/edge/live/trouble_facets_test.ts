import { deepEqual, equal } from "node:assert/strict";
import { encodeInstallState, type InstallState } from "@heddle/proto/install_state";
import { encodeWeightsState, type WeightsState } from "@heddle/proto/weights_state";
import type { Role, ShownCertificate } from "@heddle/common/identity";
import { observe } from "../../core/observing/observe.ts";
import { inventory, modelOf, registered, T0, worldWith } from "../../core/testing/builders.ts";
import type { World } from "../../core/world.ts";
import { QUIET } from "./beside_fake.ts";
import { Happenings } from "./happenings.ts";
import type { Beside } from "./trouble_facets.ts";

const SOURCE = "hf://acme/m";
const MODEL = modelOf({ name: "m", source: SOURCE });
const DAY = 86_400_000;

/** Looks again and again, and says what is new each time. */
function looking(begun: World) {
  let beside = QUIET;
  let heard = 0;
  const happenings = new Happenings(() => beside);
  const look = (world: World, now = T0) => {
    happenings.look(world, now);
    const all = [...happenings.events().values()];
    const news = all.slice(heard).map(({ kind, subject, text, next, bad }) =>
      `${bad ? "!" : " "} ${kind} ${subject}: ${text}${next === "" ? "" : ` | ${next}`}`
    );
    heard = all.length;
    return news;
  };
  equal(look(begun).length, 0);
  return {
    look,
    with: (changed: Partial<Beside>, world = begun, now = T0) => {
      beside = { ...QUIET, ...changed };
      return look(world, now);
    },
  };
}

const begun = () => worldWith([MODEL], { n1: {} });

function installing(state: InstallState, { reason = "", message = "", wanted = true } = {}) {
  const install = { name: "vllm", version: "0.28.1", progress: "", reason, message, wanted };
  return withInventory({
    installs: { installs: [{ ...install, state: encodeInstallState(state) }] },
  });
}

function fetching(state: WeightsState, { reason = "", message = "", source = SOURCE } = {}) {
  const weights = {
    ...{ folder: "", path: "", sizeBytes: 0n, doneBytes: 0n, shardIds: [], reason, message },
    want: { source, include: [], exclude: [], version: "" },
    state: encodeWeightsState(state),
  };
  return withInventory({ weights: { weights: [weights] } });
}

function withInventory(more: Partial<ReturnType<typeof inventory>>): World {
  return observe(begun(), { ...registered("n1"), inventory: { ...inventory("n1"), ...more } }, T0);
}

Deno.test("events tell once of an engine that cannot be installed, however often it is tried", () => {
  const { look } = looking(begun());
  const failed = installing("failed", { reason: "no_space", message: "want 9 GiB, have 2 GiB" });
  deepEqual(look(installing("installing")), []);
  deepEqual(look(failed), [
    "! node n1: install_failed: vllm 0.28.1: no_space: want 9 GiB, have 2 GiB | " +
    "heddle engines shows how it goes on; heddle logs n1 agent has more",
  ]);
  deepEqual(
    [...look(installing("installing")), ...look(installing("waiting")), ...look(failed)],
    [],
  );
  equal(look(installing("failed", { reason: "unreachable" })).length, 1, "another reason is news");
  deepEqual(look(installing("installed")), ["  node n1: install_failed is over: vllm 0.28.1"]);
  deepEqual(look(installing("failed", { wanted: false })), [], "nobody wants it any more");
});

Deno.test("events tell once of weights that cannot be fetched, and which model wants them", () => {
  const { look } = looking(begun());
  const failed = fetching("failed", { reason: "not_found", message: "no such repository" });
  deepEqual(look(fetching("fetching")), []);
  deepEqual(look(failed), [
    `! node n1: fetch_failed: ${SOURCE}: not_found: no such repository | ` +
    "once the cause is gone: heddle weights prefetch m --nodes n1",
  ]);
  deepEqual([...look(fetching("fetching")), ...look(failed)], []);
  deepEqual(look(fetching("ready")), [`  node n1: fetch_failed is over: ${SOURCE}`]);
  deepEqual(look(fetching("failed", { source: "hf://nobodys" })), [
    "! node n1: fetch_failed: hf://nobodys | heddle logs n1 agent has more",
  ]);
});

function shown(role: Role, name: string, leftMs: number, lifeMs = 90 * DAY): ShownCertificate {
  const notAfter = T0 + leftMs;
  const identity = { cluster: "lab", role, name };
  return { identity, hosts: [], serial: `${leftMs}`, notBefore: notAfter - lifeMs, notAfter };
}

Deno.test("events tell once of a certificate that nobody renews, also once its holder is gone", () => {
  const ending = looking(begun());
  deepEqual(ending.with({ certificates: [shown("agent", "n1", 15 * DAY)] }), []);
  const told = ending.with({
    certificates: [
      shown("agent", "n1", 13 * DAY),
      shown("router", "r1", DAY, 2 * DAY),
      shown("operator", "ann", DAY),
    ],
  });
  equal(
    told.length,
    1,
    "half of a short life is no trouble, and an operator's own is not the fleet's",
  );
  equal(told[0]?.startsWith("! node n1: certificate_ends: on "), true, told[0]);
  deepEqual(ending.with({ certificates: [] }), [], "who is not connected has not renewed it");
  deepEqual(ending.with({ certificates: [shown("agent", "n1", 12 * DAY)] }), []);
  // A connection of before the renewal may last for a moment.
  const renewed = [shown("agent", "n1", 12 * DAY), shown("agent", "n1", 90 * DAY)];
  deepEqual(ending.with({ certificates: renewed }), ["  node n1: certificate_ends is over"]);
});

Deno.test("events tell what is wrong with control itself, also what is from the beginning", () => {
  const happenings = new Happenings(() => ({ ...QUIET, storeAway: "no answer" }));
  happenings.look(begun(), T0);
  deepEqual([...happenings.events().values()].map(({ text }) => text), [
    "store_away: it decides nothing: no answer",
  ]);
  const control = looking(begun());
  const detail = "catalog.yaml:3:1: models: wrong\ncatalog.yaml:9:1: worse";
  const file = "/etc/heddle/catalog.yaml";
  const bad = { catalogFile: { file, state: "invalid", detail } } as const;
  deepEqual(control.with(bad), [
    "! control c1: catalog_invalid: catalog.yaml:3:1: models: wrong | " +
    `correct it; check it with: heddle plan ${file}`,
  ]);
  deepEqual(control.with(bad), []);
  deepEqual(control.with({ catalogFile: { file, state: "superseded", detail: "older" } }), [
    "  control c1: catalog_invalid is over",
  ]);
  const own = (days: number) => ({ notBefore: T0 - 90 * DAY, notAfter: T0 + days * DAY });
  equal(control.with({ own: own(20) }).length, 0);
  equal(control.with({ own: own(2) }).length, 1);
  const [ended = ""] = control.with({ own: own(-1) });
  equal(
    ended.startsWith("! control c1: certificate_ends → certificate_ended: since "),
    true,
    ended,
  );
  control.with({});
  const dropped = { rule: "one_fabric", detail: "r-1 spans two", at: T0 };
  deepEqual(control.with({ dropped }), [
    "! control c1: plan_dropped: it broke one_fabric: r-1 spans two | a bug: report it with control's log",
  ]);
  deepEqual(control.with({ dropped }), []);
});
