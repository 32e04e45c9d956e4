/** The frame around every page: where to go, who looks, and whether control answers. */
import { useEffect, useState } from "preact/hooks";
import type { Topic, Visit } from "../edge/console/wire.ts";
import { Away, LoggedOut, logOut, whoLooks, wordsOf } from "./call.ts";
import { type Live, useLive } from "./follow.ts";
import { Events } from "./pages/events.tsx";
import { Fleet } from "./pages/fleet.tsx";
import { Keys } from "./pages/keys.tsx";
import { Login } from "./pages/login.tsx";
import { Logs } from "./pages/logs.tsx";
import { ModelPage } from "./pages/model.tsx";
import { Models } from "./pages/models.tsx";
import { NodePage } from "./pages/node.tsx";
import { Playground } from "./pages/playground.tsx";
import { Traffic } from "./pages/traffic.tsx";
import { VisitContext } from "./parts/action.tsx";
import { Notice } from "./parts/notice.tsx";
import { hrefOf, type Route, useRoute } from "./route.ts";
import { useTheme } from "./theme.ts";

/** While nobody answers, in ms. */
const RETRY_MS = 1_000;

interface Page {
  readonly name: string;
  readonly title: string;
  /** What control pushes while it is shown. */
  readonly topics: readonly Topic[];
  readonly show: (live: Live, rest: Route) => preact.JSX.Element;
}

const PAGES: readonly Page[] = [
  {
    name: "nodes",
    title: "Fleet",
    topics: ["nodes", "replicas"],
    show: (live, [name]) =>
      name === undefined ? <Fleet live={live} /> : <NodePage live={live} name={name} />,
  },
  {
    name: "models",
    title: "Models",
    topics: ["models", "replicas", "traffic"],
    show: (live, [name]) =>
      name === undefined ? <Models live={live} /> : <ModelPage live={live} name={name} />,
  },
  {
    name: "traffic",
    title: "Traffic",
    topics: ["traffic", "routers"],
    show: (live) => <Traffic live={live} />,
  },
  { name: "keys", title: "Keys", topics: [], show: () => <Keys /> },
  {
    name: "events",
    title: "Events",
    topics: ["events", "decisions"],
    show: (live) => <Events live={live} />,
  },
  {
    name: "logs",
    title: "Logs",
    topics: ["nodes", "replicas"],
    show: (live, [source, name]) => <Logs live={live} source={source} name={name} />,
  },
  {
    name: "playground",
    title: "Playground",
    topics: ["models"],
    show: (live) => <Playground live={live} />,
  },
];

/** Everything. Until it is known who looks there is nothing, or the login. */
export function App() {
  const [visit, setVisit] = useState<Visit | "nobody" | undefined>();
  const [trouble, setTrouble] = useState("");
  const look = () => {
    whoLooks().then((found) => {
      setTrouble("");
      setVisit(found);
    }, (error: unknown) => {
      if (error instanceof LoggedOut) return setVisit("nobody");
      setTrouble(wordsOf(error));
      if (error instanceof Away) setTimeout(look, RETRY_MS);
    });
  };
  useEffect(look, []);
  if (visit === "nobody") return <Login onLoggedIn={look} />;
  if (visit === undefined) {
    return trouble === "" ? null : <Notice tone="bad">{trouble}</Notice>;
  }
  return (
    <VisitContext.Provider value={visit}>
      <Frame visit={visit} onLoggedOut={() => setVisit("nobody")} />
    </VisitContext.Provider>
  );
}

function Frame(
  { visit, onLoggedOut }: { readonly visit: Visit; readonly onLoggedOut: () => void },
) {
  const [first = "nodes", ...rest] = useRoute();
  const page = PAGES.find(({ name }) => name === first);
  const live = useLive(["status", ...page?.topics ?? []], onLoggedOut);
  const [theme, nextTheme] = useTheme();
  useEffect(() => {
    document.title = `${rest.at(-1) ?? page?.title ?? "Heddle"} · ${visit.cluster}`;
  }, [page, rest.at(-1)]);
  return (
    <>
      <a class="skip" href={`#${MAIN}`} onClick={skip}>To the content</a>
      <nav aria-label="Pages">
        <b class="brand">
          <img src="/console/icon.svg" alt="" width={20} height={20} />
          {visit.cluster}
        </b>
        <ul>
          {PAGES.map(({ name, title }) => (
            <li key={name}>
              <a href={hrefOf(name)} aria-current={name === first ? "page" : undefined}>{title}</a>
            </li>
          ))}
        </ul>
        <span class="who">{`${visit.name}, ${visit.role}`}</span>
        <button type="button" onClick={nextTheme}>{`Theme: ${theme}`}</button>
        {visit.canLogOut
          ? <button type="button" onClick={() => logOut().then(onLoggedOut)}>Log out</button>
          : null}
      </nav>
      <main id={MAIN} tabIndex={-1} aria-busy={!live.connected}>
        <Standing live={live} />
        {page === undefined ? <p>There is no such page.</p> : page.show(live, rest)}
      </main>
      <footer class="quiet">{`Heddle ${visit.version}`}</footer>
    </>
  );
}

const MAIN = "content";

// The address after "#" is the page's, so the link must not change it.
function skip(event: Event): void {
  event.preventDefault();
  document.getElementById(MAIN)?.focus();
}

function Standing({ live }: { readonly live: Live }) {
  const status = live.status.get("control");
  if (!live.connected) {
    return live.arrived.size === 0 ? null : (
      <Notice tone="bad">
        Control does not answer. What is below is as it was last; it goes on by itself.
      </Notice>
    );
  }
  if (status === undefined) return null;
  if (!status.leading) return <Notice tone="busy">{status.standing}</Notice>;
  if (status.settled) return null;
  return (
    <Notice tone="busy">
      {`Control has just begun to lead and waits for ${
        status.unheard.join(", ") || "its nodes"
      }; it places and withdraws nothing until then.`}
    </Notice>
  );
}
