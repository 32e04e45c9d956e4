import { deepEqual, equal } from "node:assert/strict";
import { awaitStopOrder, isRunning, orderStop } from "./stop_order.ts";

Deno.test("orderStop() passes on each line when it is said, not when all is over", async () => {
  const orders = await awaitStopOrder("secret");
  const session = { pid: Deno.pid, stopPort: orders.port, token: "secret", programs: [] };
  equal(await isRunning(session), true);
  const heard: string[] = [];
  const first = Promise.withResolvers<void>();
  const done = orderStop(session, (line) => {
    heard.push(line);
    first.resolve();
  });
  const order = await orders.ordered;
  order.say("Stopped the router");
  await first.promise;
  deepEqual(heard, ["Stopped the router"]);
  order.say("Stopped control");
  order.end();
  equal(await done, true);
  deepEqual(heard, ["Stopped the router", "Stopped control"]);
  await orders.close();
  equal(await orderStop(session, () => {}), false);
});

Deno.test("orderStop() with another's token stops nothing", async () => {
  const orders = await awaitStopOrder("secret");
  const session = { pid: Deno.pid, stopPort: orders.port, token: "guess", programs: [] };
  equal(await orderStop(session, () => {}), false);
  await orders.close();
});
