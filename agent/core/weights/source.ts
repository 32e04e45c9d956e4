/**
 * Where weights come from, as the catalog says it: a path, a name at a hub, or an address on the web.
 * Anything else is left to the engine, which may have it in a cache of its own.
 */

export interface HubSource {
  readonly kind: "hub";
  /** "org/name" */
  readonly repo: string;
  /** A branch, a tag or a commit; "main" when none is said. */
  readonly revision: string;
  /** A file of it, or a folder; absent: all of it. */
  readonly file?: string;
}

export interface WebSource {
  readonly kind: "web";
  /** One file; or a folder, when it ends with a slash; or the index of a model in parts. */
  readonly url: string;
}

export type RemoteSource = HubSource | WebSource;

export type Source =
  | { readonly kind: "path"; readonly path: string }
  | RemoteSource
  /** Not for us to fetch. */
  | { readonly kind: "other" }
  /** It looks like one of ours, but is wrong; `why` ends a sentence. */
  | { readonly kind: "invalid"; readonly why: string };

const HUB = "hf://";
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,95}$/;
const REVISION = /^[A-Za-z0-9][A-Za-z0-9._/+-]{0,199}$/;
/** A full commit is what a revision is resolved to. */
const COMMIT = /^[0-9a-f]{40}$/;

/** Reads what stands in a catalog's `source`. Never throws. */
export function parseSource(text: string): Source {
  if (text.startsWith("/")) return { kind: "path", path: text };
  if (text.startsWith(HUB)) return parseHub(text.slice(HUB.length));
  if (/^https?:\/\//i.test(text)) return parseWeb(text);
  return { kind: "other" };
}

/** True for a revision that nothing can move. */
export function isCommit(revision: string): boolean {
  return COMMIT.test(revision);
}

/** True when this can be a file's path inside a folder: it leads nowhere else. */
export function isInside(path: string): boolean {
  return path !== "" && path.length <= 1_000 && !path.startsWith("/") && !hasControl(path) &&
    path.split("/").every((part) => part !== "" && part !== "." && part !== "..");
}

function parseHub(rest: string): Source {
  const match = /^([^/@]+)\/([^/@]+)(?:@([^/]*))?(?:\/(.*))?$/.exec(rest);
  const [, org = "", name = "", given, path] = match ?? [];
  if (!NAME.test(org) || !NAME.test(name)) {
    return invalid(`want hf://ORG/NAME, hf://ORG/NAME@REVISION or hf://ORG/NAME@REVISION/FILE`);
  }
  const revision = given === undefined ? "main" : decoded(given);
  if (revision === undefined || !REVISION.test(revision)) {
    return invalid(`"${given ?? ""}" is no revision; write a slash in it as %2F`);
  }
  const file = path?.replace(/\/+$/, "");
  if (file === undefined || file === "") return { kind: "hub", repo: `${org}/${name}`, revision };
  if (!isInside(file)) return invalid(`"${file}" leads out of the repository`);
  return { kind: "hub", repo: `${org}/${name}`, revision, file };
}

function parseWeb(text: string): Source {
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    return invalid("it is no URL");
  }
  if (url.username !== "" || url.password !== "") {
    return invalid("a name and password in a URL stand in logs; use weights.token_file instead");
  }
  if (url.hash !== "") return invalid("a URL with # names a place in a page, not a file");
  return { kind: "web", url: url.href };
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

function invalid(why: string): Source {
  return { kind: "invalid", why };
}

function hasControl(text: string): boolean {
  // deno-lint-ignore no-control-regex
  return /[\u0000-\u001f\u007f\\]/.test(text);
}
