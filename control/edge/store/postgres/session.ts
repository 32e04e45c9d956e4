/**
 * One connection to PostgreSQL, used for one transaction at a time. Every transaction ends within a
 * bounded time: one that gets no answer loses its connection, and the next opens another. The client
 * library waits for ever for a server that went away without a word, and so would control.
 */
import net from "node:net";
import { checkServerIdentity, type PeerCertificate } from "node:tls";
import postgres, { type Options, type PostgresType, type Sql, type TransactionSql } from "postgres";
import { type Address, formatAddress } from "@heddle/common/address";
import { errorText, HeddleError } from "@heddle/proto/error";

/** Where the database is, and as whom to use it. */
export interface PostgresSettings {
  readonly address: Address;
  readonly database: string;
  readonly user: string;
  /** Undefined where the server asks for none. */
  readonly password: string | undefined;
  /** PEM of the authorities that the server's certificate is checked against; undefined: no TLS. */
  readonly ca: string | undefined;
}

/** Longest time to open a connection, and then for one transaction. A healthy one takes a few ms. */
const CONNECT_MS_MAX = 2_000;
const TRANSACTION_MS_MAX = 3_000;

/** A transaction that its control abandoned must not keep the lease locked for the others. */
const ABANDONED_MS_MAX = 5_000;

/** What the server may take for one statement, and to wait for a lock, before it refuses. */
const STATEMENT_MS_MAX = 2_500;

type Client = Sql<Record<string, PostgresType>>;

export class PostgresSession {
  readonly #settings: PostgresSettings;
  #connected: { readonly client: Client; readonly socket: net.Socket } | undefined;
  /** Ends when the transactions that were begun so far have ended. Never rejects. */
  #turn: Promise<unknown> = Promise.resolve();
  #closed = false;

  constructor(settings: PostgresSettings) {
    this.#settings = settings;
  }

  /**
   * Runs `work` in a transaction: all of it is done, or none. Throws what `work` throws when that is
   * a HeddleError, and otherwise `system`; then it is not known whether it was done if the
   * connection broke. `action` completes "Cannot …"; `committed` is told before the next begins.
   */
  transaction<T>(
    action: string,
    work: (sql: TransactionSql) => Promise<T>,
    committed: (value: T) => void = () => {},
  ): Promise<T> {
    const result = this.#turn.then(async () => {
      const value = await this.#run(action, work);
      committed(value);
      return value;
    });
    this.#turn = result.catch(() => {});
    return result;
  }

  /** Waits for what was begun. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#turn;
    const connected = this.#connected;
    this.#connected = undefined;
    await connected?.client.end({ timeout: 1 });
    connected?.socket.destroy();
  }

  async #run<T>(action: string, work: (sql: TransactionSql) => Promise<T>): Promise<T> {
    try {
      const { client } = this.#connected ??= await this.#connect();
      return await this.#bounded(client, work);
    } catch (error) {
      if (error instanceof HeddleError && !(error instanceof LostConnection)) throw error;
      // The server's own refusals leave the connection as good as it was, unless it says goodbye.
      if (!(error instanceof postgres.PostgresError) || saysGoodbye(error)) this.#drop();
      const { address } = this.#settings;
      throw new HeddleError(
        "system",
        `Cannot ${action} in PostgreSQL at ${formatAddress(address)}: ${errorText(error)}`,
        { cause: error },
      );
    }
  }

  async #bounded<T>(client: Client, work: (sql: TransactionSql) => Promise<T>): Promise<T> {
    const { promise: late, reject } = Promise.withResolvers<never>();
    const timer = setTimeout(
      () => reject(new LostConnection(`no answer within ${TRANSACTION_MS_MAX / 1_000} s`)),
      TRANSACTION_MS_MAX,
    );
    // Kept here, since the library's own type for what a transaction returns is not T.
    let done: { readonly value: T } | undefined;
    const running = client.begin(async (sql) => {
      done = { value: await work(sql) };
    });
    try {
      await Promise.race([running, late]);
    } finally {
      clearTimeout(timer);
      // It may still fail when its connection is dropped, and then nobody listens any more.
      running.catch(() => {});
    }
    if (done === undefined) throw new LostConnection("the transaction ended without a word");
    return done.value;
  }

  // The socket is ours, so that it can be cut off; the library only knows polite ends.
  async #connect(): Promise<{ client: Client; socket: net.Socket }> {
    if (this.#closed) throw new HeddleError("unavailable", "Cannot use the store: it is closed");
    const { address, database, user, password, ca } = this.#settings;
    const socket = await openSocket(address);
    socket.once("close", () => {
      if (this.#connected?.socket === socket) this.#drop();
    });
    const options: Options<Record<string, PostgresType>> & { socket: () => net.Socket } = {
      socket: () => socket,
      host: address.host,
      port: address.port,
      database,
      user,
      max: 1,
      // The library's own limits: ours hold for everything from here to the commit.
      idle_timeout: 0,
      max_lifetime: 0,
      connect_timeout: 0,
      fetch_types: false,
      onnotice: () => {},
      connection: {
        application_name: "heddle-control",
        search_path: "heddle",
        statement_timeout: STATEMENT_MS_MAX,
        lock_timeout: STATEMENT_MS_MAX,
        idle_in_transaction_session_timeout: ABANDONED_MS_MAX,
      },
      ssl: ca === undefined ? false : tlsOptions(address.host, ca),
      ...(password === undefined ? {} : { password }),
    };
    return { client: postgres(options), socket };
  }

  #drop(): void {
    const connected = this.#connected;
    this.#connected = undefined;
    connected?.socket.destroy();
    connected?.client.end({ timeout: 0 }).catch(() => {});
  }
}

/** The fate of what was sent is unknown. */
class LostConnection extends HeddleError {
  constructor(message: string) {
    super("system", message);
  }
}

function openSocket({ host, port }: Address): Promise<net.Socket> {
  const { promise, resolve, reject } = Promise.withResolvers<net.Socket>();
  const socket = net.connect({ host: host.replace(/^\[|\]$/g, ""), port });
  const timer = setTimeout(
    () => reject(new LostConnection(`no connection within ${CONNECT_MS_MAX / 1_000} s`)),
    CONNECT_MS_MAX,
  );
  socket.once("error", reject);
  socket.once("connect", () => {
    socket.removeListener("error", reject);
    // The library listens too, but not in the moments between its uses.
    socket.on("error", () => {});
    socket.setNoDelay(true);
    resolve(socket);
  });
  return promise.catch((error) => {
    socket.destroy();
    throw error;
  }).finally(() => clearTimeout(timer));
}

// A server name in TLS is a host's name: an address goes without one, but is checked all the same.
function tlsOptions(host: string, ca: string) {
  return {
    ca,
    servername: net.isIP(host) === 0 ? host : "",
    checkServerIdentity: (_: string, certificate: PeerCertificate) =>
      checkServerIdentity(host, certificate),
  };
}

/** Classes 57 and 08: the server ends the connection, or has lost it. */
function saysGoodbye(error: { readonly code: string }): boolean {
  return /^(?:57|08)/.test(error.code);
}
