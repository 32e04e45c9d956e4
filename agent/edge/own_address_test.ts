import { equal } from "node:assert/strict";
import { freePort } from "./engine/free_port_fake.ts";
import { addressTowards } from "./own_address.ts";

Deno.test("addressTowards() is loopback for a control on loopback, whether it is there or not", async () => {
  equal(await addressTowards([`http://127.0.0.1:${freePort()}`]), "127.0.0.1");
  equal(await addressTowards([`http://localhost:${freePort()}`]), "127.0.0.1");
  equal(await addressTowards([`http://[::1]:${freePort()}`]), "::1");
});

Deno.test("addressTowards() is the source of the route to the first control that answers", async () => {
  const address = Deno.networkInterfaces()
    .find(({ family, address }) => family === "IPv4" && !address.startsWith("127."))?.address;
  if (address === undefined) return;
  using listener = Deno.listen({ hostname: address, port: 0 });
  const accepting = listener.accept();
  const away = `https://${address}:${freePort()}`;
  equal(await addressTowards([away, `https://${address}:${listener.addr.port}`]), address);
  (await accepting).close();
});
