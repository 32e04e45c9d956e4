/** The proxies of this program's environment, for its own requests and for programs that it starts. */

const PROXIES = bothCases(["HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY"]);
const EXCEPTIONS = bothCases(["NO_PROXY"]);

/**
 * The runtime takes proxies from the environment by itself, but takes `*` among the exceptions for a
 * host's name. Others read it as: no proxy for anybody. So with it they are taken out, before the
 * first request.
 */
export function honourNoProxy(): void {
  const all = EXCEPTIONS.some((name) =>
    Deno.env.get(name)?.split(",").some((each) => each.trim() === "*")
  );
  if (all) { for (const name of PROXIES) Deno.env.delete(name); }
}

/** Variables that tell another program what is so here. */
export function proxyVariables(): Record<string, string> {
  const found = [...PROXIES, ...EXCEPTIONS].map((name) => [name, Deno.env.get(name)] as const);
  return Object.fromEntries(
    found.flatMap(([name, value]) => value === undefined ? [] : [[name, value]]),
  );
}

function bothCases(names: readonly string[]): readonly string[] {
  return names.flatMap((name) => [name, name.toLowerCase()]);
}
