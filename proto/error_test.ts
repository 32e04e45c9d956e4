import { equal, match, ok } from "node:assert/strict";
import { HeddleError, networkWords } from "./error.ts";

/** What a request to a server that answers `bytes`, and hangs up, fails with. */
async function failureOf(bytes: string, scheme = "http"): Promise<unknown> {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const served = (async () => {
    using connection = await listener.accept();
    await connection.read(new Uint8Array(2_000));
    await connection.write(new TextEncoder().encode(bytes));
  })();
  try {
    const url = `${scheme}://127.0.0.1:${listener.addr.port}/m.gguf?signature=secret`;
    await (await fetch(url)).text();
    return undefined;
  } catch (error) {
    return error;
  } finally {
    await served;
  }
}

Deno.test("networkWords() says why a request failed, without layers and signatures", async () => {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  listener.close();
  const url = `http://127.0.0.1:${listener.addr.port}/m.gguf?signature=secret`;
  const refused = await fetch(url).catch((error: unknown) => error);
  equal(networkWords(refused), "tcp connect error: Connection refused");

  const cases = [
    ["hello\r\n\r\n", "http", /^invalid HTTP version/],
    ["hello", "https", /corrupt message/],
    ["", "http", /^(connection closed before message completed|connection error: .+)$/],
    ["HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc", "http", /reading a body/],
  ] as const;
  for (const [bytes, scheme, words] of cases) {
    const said = networkWords(await failureOf(bytes, scheme));
    match(said, words);
    ok(!/secret|fetch failed|client error/i.test(said), said);
  }
});

Deno.test("networkWords() of what is no failure of the network is what it says", () => {
  equal(networkWords("it broke"), "it broke");
  equal(networkWords(new TypeError("fetch failed")), "fetch failed");
  equal(
    networkWords(new HeddleError("timeout", "Cannot ask", { cause: new Error("too late") })),
    "Cannot ask: too late",
  );
  const endless = new Error("round");
  endless.cause = endless;
  equal(networkWords(endless), "round: round: round: round");
});
