/** What is asked of the fleet, now and over the last hour. */
import { ALL_MODELS } from "../../edge/console/wire.ts";
import type { Live } from "../follow.ts";
import { State } from "../parts/state.tsx";
import { TrafficPlots } from "../parts/traffic_plots.tsx";
import { hrefOf } from "../route.ts";
import { byName, duration, figure, latency } from "../words.ts";

export function Traffic({ live }: { readonly live: Live }) {
  const models = [...live.traffic].filter(([name]) => name !== ALL_MODELS)
    .sort(([a, x], [b, y]) => y.requests - x.requests || byName(a, b));
  return (
    <>
      <header class="page">
        <h1>Traffic</h1>
      </header>
      <TrafficPlots model={ALL_MODELS} latest={live.traffic.get(ALL_MODELS)} />
      <h2>By model</h2>
      <table>
        <thead>
          <tr>
            <th>Model</th>
            <th class="number">Requests/s</th>
            <th class="number">Failed/s</th>
            <th class="number">Missed slo/s</th>
            <th class="number">In flight</th>
            <th class="number">Waiting</th>
            <th class="number">TTFT p99</th>
            <th class="number">Cached</th>
          </tr>
        </thead>
        <tbody>
          {models.map(([name, sample]) => (
            <tr key={name}>
              <td>
                <a href={hrefOf("models", name)}>{name}</a>
              </td>
              <td class="number">{figure(sample.requests)}</td>
              <td class="number">{figure(sample.failures)}</td>
              <td class="number">{figure(sample.sloMisses)}</td>
              <td class="number">{sample.inFlight}</td>
              <td class="number">{sample.waiting}</td>
              <td class="number">
                {sample.ttftP99Ms === null ? "-" : latency(sample.ttftP99Ms)}
              </td>
              <td class="number">
                {sample.cacheShare === null ? "-" : `${Math.round(sample.cacheShare * 100)} %`}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      <h2>Routers</h2>
      <Routers live={live} />
    </>
  );
}

function Routers({ live }: { readonly live: Live }) {
  const routers = [...live.routers].sort(([a], [b]) => byName(a, b));
  if (routers.length === 0) return <p class="quiet">No router has reported to this control.</p>;
  return (
    <table>
      <thead>
        <tr>
          <th>Router</th>
          <th>State</th>
          <th>Version</th>
          <th class="number">In flight</th>
          <th class="number">Waiting</th>
        </tr>
      </thead>
      <tbody>
        {routers.map(([name, { leased, current, version, reportAt, inFlight, waiting }]) => (
          <tr key={name}>
            <td>{name}</td>
            <td>
              <State state={leased ? "reporting" : "lost"} />
              {leased ? null : ` silent for ${duration(live.now - reportAt)}`}
              {leased && !current ? " has not applied the newest yet" : null}
            </td>
            <td>{version}</td>
            <td class="number">{inFlight}</td>
            <td class="number">{waiting}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
