/**
 * `deno task ledger [COUNT] [SEED]`: sends requests that end in every way while router and control are
 * killed and started again, and prints what engines and ledger say of them. Exits with 1 when what
 * they differ in has no explanation.
 */
import { account, told, unexplained } from "./account.ts";

const COUNT = 10_000;

async function main(count: number, seed: number): Promise<number> {
  const every = Math.max(1, Math.floor(count / 10));
  const it = await account(count, {
    seed,
    events: Array.from({ length: 9 }, (_, index) => ({
      after: (index + 1) * every,
      what: index % 3 === 1 ? "control" as const : "router" as const,
      how: index % 4 === 3 ? "stop" as const : "kill" as const,
    })),
  });
  Deno.stdout.writeSync(new TextEncoder().encode(`${told(it)}\n`));
  const wrong = unexplained(it);
  Deno.stdout.writeSync(new TextEncoder().encode(wrong.map((line) => `${line}\n`).join("")));
  return wrong.length === 0 ? 0 : 1;
}

if (import.meta.main) {
  const [count = String(COUNT), seed = "1"] = Deno.args;
  Deno.exit(await main(Number(count), Number(seed)));
}
