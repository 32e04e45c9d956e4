/** Lines over time, in the colours of the page. */
import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";

const HEIGHT_PX = 180;

/** Beside the axis there is room for six characters or so. */
const TICK = new Intl.NumberFormat(undefined, { notation: "compact", maximumSignificantDigits: 4 });

export interface Line {
  readonly label: string;
  /** Name of a colour of the style sheet, without "--". */
  readonly colour: string;
  /** Null: not known. */
  readonly values: readonly (number | null)[];
}

export function Plot(
  { title, atS, lines }: {
    readonly title: string;
    /** Seconds since 1970, rising. */
    readonly atS: readonly number[];
    readonly lines: readonly Line[];
  },
) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>(undefined);
  const [theme, setTheme] = useState(0);
  const data: uPlot.AlignedData = [[...atS], ...lines.map(({ values }) => [...values])];
  useEffect(() => {
    const element = place.current;
    if (element === null) return;
    const made = new uPlot(optionsOf(element, lines), data, element);
    plot.current = made;
    const watch = new ResizeObserver(() =>
      made.setSize({ width: element.clientWidth, height: HEIGHT_PX })
    );
    watch.observe(element);
    return () => {
      watch.disconnect();
      made.destroy();
    };
  }, [theme, lines.map(({ label }) => label).join()]);
  useEffect(() => plot.current?.setData(data), [atS, lines]);
  useEffect(() => {
    const repaint = () => setTheme((count) => count + 1);
    const dark = matchMedia("(prefers-color-scheme: dark)");
    addEventListener("heddle-theme", repaint);
    dark.addEventListener("change", repaint);
    return () => {
      removeEventListener("heddle-theme", repaint);
      dark.removeEventListener("change", repaint);
    };
  }, []);
  const newest = lines.map(({ label, values }) => `${label} ${values.at(-1) ?? "unknown"}`).join(
    ", ",
  );
  return (
    <figure class="plot">
      <figcaption>{title}</figcaption>
      <div ref={place} role="img" aria-label={`${title}: now ${newest}`} />
    </figure>
  );
}

// A canvas knows neither variables nor light-dark(): an element is asked what they come to.
function colourOf(element: HTMLElement): (name: string) => string {
  return (name) => {
    element.style.color = `var(--${name})`;
    const { color } = getComputedStyle(element);
    element.style.color = "";
    return color;
  };
}

function optionsOf(element: HTMLElement, lines: readonly Line[]): uPlot.Options {
  const colour = colourOf(element);
  const axis = {
    stroke: colour("quiet"),
    grid: { stroke: colour("line"), width: 1 },
    ticks: { stroke: colour("line"), width: 1 },
  };
  return {
    width: element.clientWidth,
    height: HEIGHT_PX,
    cursor: { drag: { x: false, y: false } },
    scales: { y: { range: (_plot, _min, max) => [0, max <= 0 ? 1 : max * 1.1] } },
    axes: [axis, { ...axis, size: 54, values: (_plot, ticks) => ticks.map(TICK.format) }],
    series: [
      {},
      ...lines.map((line) => ({
        label: line.label,
        stroke: colour(line.colour),
        width: 2,
        points: { show: line.values.length < 2, filter: alone },
      })),
    ],
  };
}

// No line goes through a value between two unknown ones, so it gets a point.
function alone(plot: uPlot, series: number, shown: boolean): number[] | null {
  if (shown) return null;
  const values = plot.data[series] ?? [];
  const known = (index: number) => typeof values[index] === "number";
  const points = [...values.keys()];
  return points.filter((index) => known(index) && !known(index - 1) && !known(index + 1));
}
