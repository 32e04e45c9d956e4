/**
 * Follows what control pushes. A page names the collections that it shows; control sends each of them
 * whole, and then what changes. When the stream breaks, what was there stays on the screen, marked as
 * old, and the stream is opened again until control answers.
 */
import { useEffect, useRef, useState } from "preact/hooks";
import type { Frame, Items, Topic } from "../edge/console/wire.ts";
import { LoggedOut, whoLooks } from "./call.ts";

/** Between two tries to reach control, in ms. */
const RETRY_MS = 1_000;

/** How often what is shown as a time of waiting moves on, in ms. */
const CLOCK_MS = 1_000;

export type Collections = { readonly [T in Topic]: ReadonlyMap<string, Items[T]> };

export interface Live extends Collections {
  /** False while control does not answer; then everything here is as it was last. */
  readonly connected: boolean;
  /** Collections that have arrived. */
  readonly arrived: ReadonlySet<Topic>;
  /** Control's clock. */
  readonly now: number;
}

const NOTHING: Live = {
  connected: false,
  arrived: new Set(),
  now: 0,
  status: new Map(),
  nodes: new Map(),
  models: new Map(),
  replicas: new Map(),
  routers: new Map(),
  decisions: new Map(),
  traffic: new Map(),
  events: new Map(),
};

/** `onLoggedOut` is called when the session has ended. */
export function useLive(topics: readonly Topic[], onLoggedOut: () => void): Live {
  const [live, setLive] = useState(NOTHING);
  const clock = useRef({ control: 0, page: 0 });
  const wanted = [...topics].sort().join(",");
  useEffect(() => {
    const stream = openStream(wanted, {
      frame(frame) {
        clock.current = { control: frame.now, page: performance.now() };
        setLive((before) => withFrame(before, frame));
      },
      connected: (connected) => setLive((before) => ({ ...before, connected })),
      loggedOut: onLoggedOut,
    });
    return () => stream.close();
  }, [wanted]);
  useEffect(() => {
    const timer = setInterval(() => {
      const { control, page } = clock.current;
      const now = control + performance.now() - page;
      setLive((before) => control === 0 || !before.connected ? before : { ...before, now });
    }, CLOCK_MS);
    return () => clearInterval(timer);
  }, []);
  return live;
}

function withFrame(before: Live, frame: Frame): Live {
  const known = frame.whole ? [] : before[frame.topic];
  const items = new Map<string, unknown>(known);
  for (const key of frame.gone) items.delete(key);
  for (const [key, item] of Object.entries(frame.set)) items.set(key, item);
  const arrived = new Set(before.arrived).add(frame.topic);
  return { ...before, connected: true, arrived, now: frame.now, [frame.topic]: items };
}

interface Listener {
  frame(frame: Frame): void;
  connected(is: boolean): void;
  loggedOut(): void;
}

function openStream(topics: string, listener: Listener): { close(): void } {
  let source: EventSource | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let closed = false;
  const open = () => {
    const opened = new EventSource(`/console/live?topics=${topics}`);
    source = opened;
    opened.onmessage = (event) => listener.frame(JSON.parse(event.data));
    opened.onerror = () => {
      // By itself it would give up on some errors and on others wait for longer each time.
      opened.close();
      listener.connected(false);
      if (!closed) timer = setTimeout(again, RETRY_MS);
    };
  };
  const again = async () => {
    try {
      await whoLooks();
      if (!closed) open();
    } catch (error) {
      if (closed) return;
      if (error instanceof LoggedOut) return listener.loggedOut();
      timer = setTimeout(again, RETRY_MS);
    }
  };
  open();
  return {
    close() {
      closed = true;
      clearTimeout(timer);
      source?.close();
    },
  };
}
