/**
 * What systemd is told of a program, so that it knows when the program is up, and restarts one that
 * hangs without ending. Nothing happens where systemd does not ask for it. Datagrams on a socket of
 * its own: a program may start no other, and `systemd-notify` would be one.
 */
import { join } from "node:path";
import { errorText } from "@heddle/proto/error";
import { logger } from "./log.ts";

const log = logger("systemd");

/** While it starts, systemd is asked for so much more time, so often: a hung loop asks for none. */
const STARTING_MS = 5_000;
const EXTEND_US = 20_000_000;

export interface SdNotify {
  /** What it is there for works. From here on it says regularly that it does not hang. */
  ready(): void;
  /** It ends, and takes as long as it takes. */
  stopping(): void;
  close(): void;
}

const NOBODY_ASKS: SdNotify = { ready() {}, stopping() {}, close() {} };

export interface SdNotifyOptions {
  /** Where the program's own socket may lie. */
  readonly folder: string;
  /** NOTIFY_SOCKET */
  readonly socket: string | undefined;
  /** WATCHDOG_USEC */
  readonly watchdog: string | undefined;
}

/** Begins to talk to systemd. */
export function openSdNotify({ folder, socket: peer, watchdog }: SdNotifyOptions): SdNotify {
  // An abstract one begins with "@"; systemd's own is a path.
  if (peer?.startsWith("/") !== true) return NOBODY_ASKS;
  const path = join(folder, "notify.sock");
  const socket = bind(path);
  if (socket === undefined) return NOBODY_ASKS;
  let closed = false;
  // One after the other: Deno refuses to send what comes while something is being sent.
  let sent: Promise<unknown> = Promise.resolve();
  const send = (text: string) => {
    sent = sent
      .then(() =>
        socket.send(new TextEncoder().encode(text), { transport: "unixpacket", path: peer })
      )
      .catch((error: unknown) => {
        if (!closed) log.warning("Cannot tell systemd", { reason: errorText(error) });
      });
  };
  send(`EXTEND_TIMEOUT_USEC=${EXTEND_US}`);
  let timer = setInterval(() => send(`EXTEND_TIMEOUT_USEC=${EXTEND_US}`), STARTING_MS);
  return {
    ready() {
      clearInterval(timer);
      send("READY=1");
      const watchdogUs = Number(watchdog ?? 0);
      // Twice as often as it has to be, as systemd's manual advises.
      if (watchdogUs > 0) timer = setInterval(() => send("WATCHDOG=1"), watchdogUs / 2_000);
    },
    stopping() {
      send("STOPPING=1");
    },
    close() {
      closed = true;
      clearInterval(timer);
      socket.close();
      removeIfThere(path);
    },
  };
}

function bind(path: string): Deno.DatagramConn | undefined {
  try {
    // One that was killed has left its own, and a name that is taken cannot be bound.
    removeIfThere(path);
    return Deno.listenDatagram({ transport: "unixpacket", path });
  } catch (error) {
    log.warning("Cannot talk to systemd", { reason: errorText(error) });
    return undefined;
  }
}

function removeIfThere(path: string): void {
  try {
    Deno.removeSync(path);
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
}
