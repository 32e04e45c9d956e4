/** Questions to Deno about what a program is granted: all that any set of deno.json mentions, and more. */
import { type Kind, KINDS, readGrants, VERBS } from "../../tools/build/permission_set.ts";
import { PROGRAMS } from "../../tools/build/program.ts";

/** Mentioned by no set, or only through HEDDLE_STATE and its like. */
const OTHERS: Readonly<Record<Kind, readonly string[]>> = {
  read: ["/", "/etc/shadow", "/s/t/x", "/s/u", "/s/v", "/s/ctl/x", "/s", "./bin", "./lib"],
  write: ["/", "/s/t/x", "/s/u", "/s", "./bin", "./lib", "./runtime"],
  net: ["example.invalid", "127.0.0.1:1", "169.254.169.254:80"],
  env: ["PATH", "HEDDLE_X", "HEDDLE_SIM_X", "LD_PRELOAD"],
  sys: ["hostname", "uid", "loadavg"],
  run: ["/bin/sh", "./runtime/deno", "/s/nvidia-smi", "./bin/heddle"],
  ffi: ["/lib/x.so"],
  import: ["example.invalid:443"],
};

/** The queries, for a program that lies in `./`. */
export function permissionQueries(config: string): readonly Deno.PermissionDescriptor[] {
  const values = new Map(KINDS.map((kind) => [kind, new Set(OTHERS[kind])]));
  for (const { room } of PROGRAMS) {
    const { set } = readGrants(config, room);
    for (const kind of KINDS) {
      for (const verb of VERBS) {
        const extent = set[kind]?.[verb];
        if (extent === undefined || extent === "all") continue;
        for (const one of extent) values.get(kind)?.add(one.replace("*", "ANY"));
      }
    }
  }
  return KINDS.flatMap((kind) => [
    whole(kind),
    ...[...values.get(kind) ?? []].map((value) => about(kind, value)),
  ]);
}

function whole(kind: Kind): Deno.PermissionDescriptor {
  return { name: kind };
}

function about(kind: Kind, value: string): Deno.PermissionDescriptor {
  switch (kind) {
    case "read":
    case "write":
    case "ffi":
      return { name: kind, path: value };
    case "net":
    case "import":
      return { name: kind, host: value };
    case "env":
      return { name: kind, variable: value };
    case "run":
      return { name: kind, command: value };
    case "sys": {
      const found = SYS_KINDS.find((each) => each === value);
      if (found === undefined) throw new Error(`Unknown kind of sys permission: ${value}`);
      return { name: kind, kind: found };
    }
    default:
      return kind satisfies never;
  }
}

const SYS_KINDS = [
  "loadavg",
  "hostname",
  "systemMemoryInfo",
  "networkInterfaces",
  "osRelease",
  "osUptime",
  "uid",
  "gid",
  "username",
  "cpus",
  "homedir",
  "statfs",
  "getPriority",
  "setPriority",
] as const;
