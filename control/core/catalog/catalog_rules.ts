/** Rules of the catalog that reach over several models: names, aliases, fallbacks. */
import type { z } from "zod";

interface NamedModel {
  readonly name: string;
  readonly aliases: readonly string[];
  readonly fallbacks: readonly string[];
  readonly profiles: readonly { readonly name: string }[];
}

type Context = z.core.$RefinementCtx;

/** Names and aliases are one namespace; fallbacks exist and never lead back. */
export function crossCheck(models: readonly NamedModel[], context: Context): void {
  const owners = checkNames(models, context);
  checkProfileNames(models, context);
  checkFallbacks(models, owners, context);
}

/** Owner of each name and alias. The first one keeps a name that is given twice. */
function checkNames(models: readonly NamedModel[], context: Context): ReadonlyMap<string, string> {
  const owners = new Map<string, { owner: string; path: string }>();
  const claim = (name: string, owner: string, path: (string | number)[]) => {
    const before = owners.get(name);
    if (before === undefined) {
      owners.set(name, { owner, path: formatPath(path) });
      return;
    }
    context.addIssue({
      code: "custom",
      path,
      message: `"${name}" is already the name or alias at ${before.path}`,
    });
  };
  models.forEach((model, index) => claim(model.name, model.name, ["models", index, "name"]));
  models.forEach((model, index) =>
    model.aliases.forEach((alias, at) => claim(alias, model.name, ["models", index, "aliases", at]))
  );
  return new Map([...owners].map(([name, { owner }]) => [name, owner]));
}

function checkProfileNames(models: readonly NamedModel[], context: Context): void {
  models.forEach((model, index) => {
    const seen = new Map<string, number>();
    model.profiles.forEach((profile, at) => {
      const before = seen.get(profile.name);
      if (before === undefined) {
        seen.set(profile.name, at);
        return;
      }
      context.addIssue({
        code: "custom",
        path: ["models", index, "profiles", at, "name"],
        message: `"${profile.name}" is already the name of profiles[${before}]`,
      });
    });
  });
}

function checkFallbacks(
  models: readonly NamedModel[],
  owners: ReadonlyMap<string, string>,
  context: Context,
): void {
  const byName = new Map(models.map((model) => [model.name, model]));
  models.forEach((model, index) =>
    model.fallbacks.forEach((fallback, at) => {
      const path = ["models", index, "fallbacks", at];
      const target = owners.get(fallback);
      if (target === undefined) {
        context.addIssue({
          code: "custom",
          path,
          message: `"${fallback}" is no model and no alias of this catalog`,
        });
        return;
      }
      const way = wayBack(target, model.name, byName, owners);
      if (way !== undefined) {
        context.addIssue({
          code: "custom",
          path,
          message: `falls back to itself: ${[model.name, ...way].join(" → ")}`,
        });
      }
    })
  );
}

/** The models from `from` to `to` along fallbacks, both included; undefined when there is no way. */
function wayBack(
  from: string,
  to: string,
  byName: ReadonlyMap<string, NamedModel>,
  owners: ReadonlyMap<string, string>,
): readonly string[] | undefined {
  const previous = new Map<string, string | undefined>([[from, undefined]]);
  const queue = [from];
  for (let name = queue.shift(); name !== undefined; name = queue.shift()) {
    if (name === to) {
      const way: string[] = [];
      for (let at: string | undefined = name; at !== undefined; at = previous.get(at)) {
        way.unshift(at);
      }
      return way;
    }
    for (const fallback of byName.get(name)?.fallbacks ?? []) {
      const next = owners.get(fallback);
      if (next === undefined || previous.has(next)) continue;
      previous.set(next, name);
      queue.push(next);
    }
  }
  return undefined;
}

function formatPath(path: readonly (string | number)[]): string {
  return path.reduce<string>(
    (text, part) =>
      typeof part === "number" ? `${text}[${part}]` : text === "" ? part : `${text}.${part}`,
    "",
  );
}
