/** The proxies of this program's environment, for its own requests and for programs that it starts. */

const PROXIES = bothCases(["HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY"]);
const EXCEPTIONS = bothCases(["NO_PROXY"]);

/** What is used of the program's environment. */
export interface Environment {
  get(name: string): string | undefined;
  delete(name: string): void;
}

/**
 * The runtime takes proxies from the environment by itself, but takes `*` among the exceptions for a
 * host's name. Others read it as: no proxy for anybody. So with it they are taken out, before the
 * first request.
 */
export function honourNoProxy(env: Environment): void {
  const all = EXCEPTIONS.some((name) =>
    env.get(name)?.split(",").some((each) => each.trim() === "*")
  );
  if (all) { for (const name of PROXIES) env.delete(name); }
}

/** Variables that tell another program what is so here. */
export function proxyVariables(env: Environment): Record<string, string> {
  const found = [...PROXIES, ...EXCEPTIONS].map((name) => [name, env.get(name)] as const);
  return Object.fromEntries(
    found.flatMap(([name, value]) => value === undefined ? [] : [[name, value]]),
  );
}

function bothCases(names: readonly string[]): readonly string[] {
  return names.flatMap((name) => [name, name.toLowerCase()]);
}
