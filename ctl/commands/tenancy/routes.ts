/** The commands about who may use what, and what was used. */
import { buildRouteMap } from "@stricli/core";
import { backup, restore } from "../backup.ts";
import { createKey, updateKey } from "./key_create.ts";
import { revokeKey, rotateKey } from "./key_end.ts";
import { listKeys } from "./key_list.ts";
import { showKey } from "./key_show.ts";
import { setLimits, showLimits } from "./limits.ts";
import { listPrices, setPrice } from "./prices.ts";
import { scopeCommands } from "./scopes.ts";
import { showUsage } from "./usage.ts";

export const TENANCY_ROUTES = {
  orgs: buildRouteMap({
    docs: { brief: "Organisations: what teams and projects are in" },
    defaultCommand: "list",
    routes: scopeCommands("organisation"),
  }),
  teams: buildRouteMap({
    docs: { brief: "Teams: parts of organisations" },
    defaultCommand: "list",
    routes: scopeCommands("team"),
  }),
  projects: buildRouteMap({
    docs: { brief: "Projects: what keys are in" },
    defaultCommand: "list",
    routes: scopeCommands("project"),
  }),
  keys: buildRouteMap({
    docs: { brief: "Keys: who may use the endpoint, and for what" },
    defaultCommand: "list",
    routes: {
      list: listKeys,
      create: createKey,
      show: showKey,
      update: updateKey,
      rotate: rotateKey,
      revoke: revokeKey,
    },
  }),
  limits: buildRouteMap({
    docs: { brief: "How much may be used, and by whom" },
    routes: { show: showLimits, set: setLimits },
  }),
  prices: buildRouteMap({
    docs: { brief: "What models cost, in units" },
    defaultCommand: "list",
    routes: { list: listPrices, set: setPrice },
  }),
  usage: showUsage,
  backup,
  restore,
};
