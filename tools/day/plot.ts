/** A day as a picture: what was asked, how many replicas there were, and how much came too late. */
import { DAY_S } from "./trace.ts";

const WIDTH = 860;
const LEFT = 56;
const RIGHT = 16;
const PANEL_HEIGHT = 130;
const PANEL_GAP = 46;
const TOP = 34;

/** Points of a line: second of the day, value. */
export type Points = readonly (readonly [number, number])[];

export interface Line {
  /** The class that colours it. */
  readonly style: "asked" | "scaled" | "least" | "most";
  readonly label: string;
  readonly points: Points;
}

export interface Panel {
  readonly title: string;
  readonly top: number;
  /** What a value is written as on the axis. */
  readonly unit: (value: number) => string;
  readonly lines: readonly Line[];
}

/** Colours that can be told apart on white and on black, also by who sees no red. */
const STYLE = `
  text { font: 12px system-ui, sans-serif; fill: #333 }
  .title { font-weight: 600 }
  .grid { stroke: #8884; stroke-width: 1 }
  .line { fill: none; stroke-width: 1.8; stroke-linejoin: round }
  .asked { stroke: #777 } .scaled { stroke: #0072b2 } .least { stroke: #d55e00 } .most { stroke: #009e73 }
  .key.asked { fill: #777 } .key.scaled { fill: #0072b2 } .key.least { fill: #d55e00 }
  .key.most { fill: #009e73 } .key { stroke: none }
  @media (prefers-color-scheme: dark) { text { fill: #ddd } .scaled { stroke: #56b4e9 } .key.scaled { fill: #56b4e9 } }
`;

/** The whole picture as SVG. Pure. */
export function plot(panels: readonly Panel[]): string {
  const height = TOP + panels.length * (PANEL_HEIGHT + PANEL_GAP);
  const body = panels.map((panel, index) => drawn(panel, TOP + index * (PANEL_HEIGHT + PANEL_GAP)));
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" role="img">
<style>${STYLE}</style>
${body.join("\n")}
</svg>
`;
}

function drawn({ title, top, unit, lines }: Panel, y: number): string {
  const x = (second: number) => LEFT + (WIDTH - LEFT - RIGHT) * second / DAY_S;
  const up = (value: number) => y + PANEL_HEIGHT * (1 - Math.min(1, value / top));
  const marks = [0, 0.5, 1].map((part) => {
    const at = up(part * top).toFixed(1);
    return `<line class="grid" x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${at}" y2="${at}"/>` +
      `<text x="${LEFT - 6}" y="${at}" dy="4" text-anchor="end">${unit(part * top)}</text>`;
  });
  const hours = [0, 4, 8, 12, 16, 20, 24].map((hour) =>
    `<text x="${x(hour * 3_600).toFixed(1)}" y="${y + PANEL_HEIGHT + 16}" text-anchor="middle">` +
    `${String(hour).padStart(2, "0")}:00</text>`
  );
  const paths = lines.map(({ style, points }) =>
    `<polyline class="line ${style}" points="${
      points.map(([second, value]) => `${x(second).toFixed(1)},${up(value).toFixed(1)}`).join(" ")
    }"/>`
  );
  return [
    `<text class="title" x="${LEFT}" y="${y - 10}">${title}</text>`,
    keys(lines, y - 10),
    ...marks,
    ...hours,
    ...paths,
  ].join("\n");
}

/** What each line is, right of the title. */
function keys(lines: readonly Line[], y: number): string {
  if (lines.length < 2) return "";
  const each = 190;
  return lines.map(({ style, label }, index) => {
    const at = WIDTH - RIGHT - each * (lines.length - index);
    return `<rect class="key ${style}" x="${at}" y="${y - 9}" width="12" height="10"/>` +
      `<text x="${at + 17}" y="${y}">${label}</text>`;
  }).join("\n");
}
