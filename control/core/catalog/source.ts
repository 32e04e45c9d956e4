/** Which sources of weights nodes fetch, and whether one that looks so can be. */

/** True for what nodes fetch themselves. */
export function isFetched(source: string): boolean {
  return /^(?:hf|https?):\/\//i.test(source);
}

/** Why a source cannot be fetched; undefined when it can, or is none to be fetched. */
export function sourceProblem(source: string): string | undefined {
  if (/^hf:\/\//i.test(source)) {
    if (!source.startsWith("hf://")) return "write hf:// in small letters";
    return HUB.test(source) ? undefined : "want hf://ORG/NAME, with @REVISION and /FILE if need be";
  }
  if (!/^https?:\/\//i.test(source)) return undefined;
  if (!URL.canParse(source)) return "it is no URL";
  const { username, password, hash } = new URL(source);
  if (username !== "" || password !== "") {
    return "a name and password in a URL stand in logs; use weights.token_file of the agents";
  }
  return hash === "" ? undefined : "a URL with # names a place in a page, not a file";
}

const HUB =
  /^hf:\/\/[A-Za-z0-9][\w.-]*\/[A-Za-z0-9][\w.-]*(?:@[\w.%+-]+)?(?:\/(?!\.\.?(?:\/|$))[^/]+)*\/?$/;
