/** A dashboard as Grafana imports it. */
import type { Dashboard, Panel } from "./panel.ts";

/** Of schema 39, which Grafana 10 and later read. */
const SCHEMA_VERSION = 39;
/** Grafana's grid is 24 columns wide. */
const GRID_WIDTH = 24;
const PANEL_WIDTH = 12;
const PANEL_HEIGHT = 8;
const STAT_WIDTH = 4;
const DATASOURCE = { type: "prometheus", uid: "${datasource}" } as const;

export function grafanaJson(dashboard: Dashboard): string {
  const panels: unknown[] = [];
  let y = 0;
  for (const row of dashboard.rows) {
    panels.push({
      type: "row",
      title: row.title,
      collapsed: false,
      gridPos: { x: 0, y, w: GRID_WIDTH, h: 1 },
      panels: [],
    });
    y = place(row.panels, panels, y + 1);
  }
  const numbered = panels.map((panel, index) => ({ id: index + 1, ...Object(panel) }));
  return `${
    JSON.stringify(
      {
        uid: dashboard.uid,
        title: dashboard.title,
        tags: ["heddle"],
        schemaVersion: SCHEMA_VERSION,
        editable: true,
        graphTooltip: 1,
        refresh: "30s",
        time: { from: "now-3h", to: "now" },
        templating: { list: [datasource(), ...dashboard.variables.map(variable)] },
        panels: numbered,
      },
      null,
      2,
    )
  }\n`;
}

/** Adds the panels below `y`, left to right, and returns where the next row begins. */
function place(panels: readonly Panel[], to: unknown[], y: number): number {
  let x = 0;
  for (const panel of panels) {
    const w = panel.stat === true ? STAT_WIDTH : PANEL_WIDTH;
    if (x + w > GRID_WIDTH) {
      x = 0;
      y += PANEL_HEIGHT;
    }
    to.push(panelJson(panel, { x, y, w, h: PANEL_HEIGHT }));
    x += w;
  }
  return y + PANEL_HEIGHT;
}

function panelJson(panel: Panel, gridPos: Readonly<Record<string, number>>) {
  return {
    type: panel.stat === true ? "stat" : "timeseries",
    title: panel.title,
    description: panel.description,
    datasource: DATASOURCE,
    gridPos,
    fieldConfig: { defaults: { unit: panel.unit, min: 0 }, overrides: [] },
    options: panel.stat === true
      ? { reduceOptions: { calcs: ["lastNotNull"] } }
      : { legend: { displayMode: "list", placement: "bottom" }, tooltip: { mode: "multi" } },
    targets: panel.queries.map(({ expr, legend }, index) => ({
      refId: String.fromCharCode("A".charCodeAt(0) + index),
      datasource: DATASOURCE,
      expr,
      legendFormat: legend,
    })),
  };
}

function datasource() {
  return { name: "datasource", type: "datasource", query: "prometheus", label: "Data source" };
}

function variable({ name, metric, label }: Dashboard["variables"][number]) {
  const query = `label_values(${metric}, ${label})`;
  return {
    name,
    type: "query",
    datasource: DATASOURCE,
    definition: query,
    query: { query, refId: "V" },
    refresh: 2,
    multi: true,
    includeAll: true,
    current: { text: "All", value: "$__all" },
  };
}
