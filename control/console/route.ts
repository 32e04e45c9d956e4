/** Which page is shown: the part of the address after "#", so that the server has one page only. */
import { useEffect, useState } from "preact/hooks";

/** "#/models/a%2Fb" is `["models", "a/b"]`. */
export type Route = readonly string[];

export function hrefOf(...parts: readonly string[]): string {
  return `#/${parts.map(encodeURIComponent).join("/")}`;
}

export function useRoute(): Route {
  const [route, setRoute] = useState(currentRoute);
  useEffect(() => {
    const changed = () => {
      setRoute(currentRoute());
      scrollTo(0, 0);
    };
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, []);
  return route;
}

function currentRoute(): Route {
  return location.hash.replace(/^#\/?/, "").split("/").filter((part) => part !== "").map(decoded);
}

// An address that a person mistyped is a page that is not there, not an error.
function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
