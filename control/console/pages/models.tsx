/** Every model of the catalog: how many of it run, and why it is not as it should be. */
import { modelActions } from "../actions.ts";
import type { Live } from "../follow.ts";
import { ActionButton } from "../parts/action.tsx";
import { hrefOf } from "../route.ts";
import { duration, figure } from "../words.ts";

export function Models({ live }: { readonly live: Live }) {
  const models = [...live.models].sort(([, a], [, b]) => a.order - b.order);
  return (
    <>
      <header class="page">
        <h1>Models</h1>
      </header>
      {models.length === 0 && live.arrived.has("models")
        ? <p class="quiet">The catalog has no model.</p>
        : null}
      <div class="models">
        {models.map(([name, model]) => {
          const traffic = live.traffic.get(name);
          return (
            <article class="model" key={name} aria-label={`model ${name}`}>
              <h3>
                <a href={hrefOf("models", name)}>{name}</a>
                <span class={model.ready >= model.desired ? "state good" : "state bad"}>
                  {`${model.ready} of ${model.desired} ready`}
                </span>
                {model.paused ? <span class="state busy">paused</span> : null}
                {model.held === undefined
                  ? null
                  : <span class="state busy">{`held at ${model.held}`}</span>}
              </h3>
              <p class="quiet">
                {[
                  ...(model.aliases.length === 0 ? [] : [`also ${model.aliases.join(", ")}`]),
                  model.min === model.max ? `${model.min} wanted` : `${model.min} to ${model.max}`,
                  ...(model.starting > 0 ? [`${model.starting} starting`] : []),
                  ...(model.draining > 0 ? [`${model.draining} draining`] : []),
                  ...(traffic === undefined ? [] : [
                    `${figure(traffic.requests)} requests/s`,
                    `${traffic.inFlight} in flight`,
                    `${traffic.waiting} waiting`,
                  ]),
                ].join(" · ")}
              </p>
              {model.reason === "" ? null : <p class="reason">{model.reason}</p>}
              {model.scaleReason === "" ? null : <p class="quiet">{model.scaleReason}</p>}
              {model.nextStartAt === undefined
                ? null
                : <p class="quiet">{`tried again in ${duration(model.nextStartAt - live.now)}`}</p>}
              {model.unsafeProfiles.length === 0
                ? null
                : <p class="reason">{`unsafe_env: ${model.unsafeProfiles.join(", ")}`}</p>}
              <div class="buttons">
                {modelActions(name, model).map((action) => (
                  <ActionButton key={action.label} action={action} />
                ))}
              </div>
            </article>
          );
        })}
      </div>
    </>
  );
}
