import { deepEqual, equal, throws } from "node:assert/strict";
import { attachSettings, enginePort } from "./settings.ts";

const TOLD = { engineId: "e", controlUrl: "https://c:7444" };

Deno.test("attachSettings() needs an engine id and control, and names what is missing", () => {
  throws(() => attachSettings({ controlUrl: "https://c:7444" }), /HEDDLE_ENGINE_ID: it is not set/);
  throws(() => attachSettings({ engineId: "e" }), /HEDDLE_CONTROL_URL: it is not set/);
  const { nodes, healthUrl, hostId, endpoint, model } = attachSettings(TOLD);
  deepEqual({ nodes, healthUrl, hostId, endpoint, model }, {
    nodes: [0],
    healthUrl: undefined,
    hostId: "",
    endpoint: "",
    model: "",
  });
});

Deno.test("attachSettings() reads one node, several and ranges", () => {
  const nodes = (nodeIndex: string) => attachSettings({ ...TOLD, nodeIndex }).nodes;
  deepEqual(["2", "0,1", "0-3", "4-5, 7"].map(nodes), [[2], [0, 1], [0, 1, 2, 3], [4, 5, 7]]);
  for (const bad of ["", " ", "-1", "a", "0,0", "3-1", "0-99999", "1.5", "0-"]) {
    throws(() => nodes(bad), /HEDDLE_NODE_INDEX/, bad);
  }
});

Deno.test("attachSettings() takes several controls", () => {
  deepEqual(attachSettings({ ...TOLD, controlUrl: "https://a:1, https://b:2" }).controlUrls, [
    "https://a:1",
    "https://b:2",
  ]);
});

Deno.test("enginePort() is the one of the health URL, and unknown without one", () => {
  const port = (healthUrl: string) => enginePort(attachSettings({ ...TOLD, healthUrl }));
  deepEqual(["http://127.0.0.1:8000/health", "http://h/", "https://h/x"].map(port), [
    8000,
    80,
    443,
  ]);
  equal(enginePort(attachSettings(TOLD)), undefined);
  for (const bad of ["127.0.0.1:8000", "ftp://x", "no"]) {
    throws(() => port(bad), /HEDDLE_ENGINE_HEALTH_URL/);
  }
});
