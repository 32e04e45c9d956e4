/**
 * The scripts in bin/. Each starts one program under its permission set, and there are two of each
 * from one template: that of the repository, which names the set, and that of a release, which
 * spells the set out in flags and runs the release's own runtime.
 *
 * To Deno, a flag that allows files replaces what the set allows of files. So where the environment
 * moves a program's folder, the flag says all that remains.
 */
import { NAMED_PATHS } from "./named_paths.ts";
import { flagsOf, type Grants, type Kind, type PermissionSet, settle } from "./permission_set.ts";
import type { Program } from "./program.ts";

export type LauncherForm = "repository" | "release";

/** Always: nothing asks, and nothing is fetched. */
const CLOSED = "--quiet --no-prompt --no-remote --cached-only";
/** In a release, moreover: no file around it and no package has a say. */
const ALONE = "--no-config --no-lock --no-npm";

/** Stands for the script's `$root` until words are quoted; no path holds it. */
const ROOT = "\0";

/** The text of bin/`program.name`. Pure. */
export function launcherText(program: Program, grants: Grants, form: LauncherForm): string {
  const set = settle(grants.set, { root: ROOT });
  const changes = changesOf(program, set);
  const entry = form === "repository" ? `${program.folder}/main.ts` : `lib/${program.name}.mjs`;
  return [
    "#!/bin/sh",
    ...comment(program, form),
    'self=$(readlink -f "$0")',
    "root=${self%/*/*}",
    ...(program.hands === undefined ? [] : [
      `case "\${1:-}" in ${program.hands.words.join(" | ")}) ` +
      `exec "$root/bin/${program.hands.to}" "$@" ;; esac`,
    ]),
    `set -- "$root/${entry}" "$@"`,
    ...changes.flatMap((change) => choose(change, set, form)),
    ...(program.moves === "state" ? [LOG_FILE] : []),
    ...(form === "release" ? CACHE : []),
    ...start(program, { set: fixedPart(set, changes), unstable: grants.unstable }, form),
    "",
  ].join("\n");
}

const LOG_FILE = '[ -z "${HEDDLE_LOG_FILE:-}" ] || exec 2>>"$HEDDLE_LOG_FILE"';

const CACHE = [
  "# Where there is no home, Deno would end before it starts anything.",
  '[ -n "${DENO_DIR:-}${XDG_CACHE_HOME:-}${HOME:-}" ] || export DENO_DIR=/dev/null/deno',
];

function comment(program: Program, form: LauncherForm): readonly string[] {
  const lines = [`Starts ${program.what} under its permission set.`];
  if (program.moves === "state") {
    lines.push(
      "HEDDLE_STATE moves the one folder that it may read and write; HEDDLE_READ then adds folders to",
      "read, separated by commas. HEDDLE_LOG_FILE is where the log goes.",
    );
  }
  if (program.moves === "ctl") {
    lines.push(
      "HEDDLE_CTL_CONFIG names another configuration file. `ca` may write into HEDDLE_CA, the folder",
      "of the authority, and HEDDLE_TLS, that of one certificate, and `config use` where its",
      "configuration is; nothing else may. `plan`,",
      "`apply`, `doctor` and `bench` may also read the files that they are given, and all of them the",
      "operator's token that --token-file or HEDDLE_TOKEN_FILE names.",
    );
  }
  if (program.moves === "fetch") {
    lines.push(
      "HEDDLE_FETCH_INTO names the one folder that it may read and write, HEDDLE_FETCH_READ what else it",
      "may read, separated by commas.",
    );
  }
  if (program.moves === "install") {
    lines.push(
      "HEDDLE_INSTALL_INTO names the one folder that it may read and write, HEDDLE_INSTALL_READ what else",
      "it may read, separated by commas, HEDDLE_INSTALL_UV the uv that it may run.",
    );
  }
  if (program.moves === "token") {
    lines.push(
      "HEDDLE_JOIN_TOKEN_FILE names the one file that it may read. HEDDLE_NVIDIA_SMI names the",
      "nvidia-smi that it may run, several separated by commas.",
    );
  } else if (program.runsNvidiaSmi) {
    lines.push(
      "HEDDLE_NVIDIA_SMI names the nvidia-smi that it may run, several separated by commas. Engines",
      "are only ever started through heddle-shim or by systemd.",
    );
  }
  if (program.namesPaths) {
    lines.push(
      "As first words, `diagnose` and `inventory` may also use the very paths that they are given.",
    );
  }
  lines.push(
    form === "repository"
      ? "Written by: deno task launchers"
      : "Nothing outside this release has a say in how it runs.",
  );
  return lines.map((line) => `# ${line}`);
}

/** What the environment changes: in each case, flags in the place of what the set allows of `kinds`. */
interface Change {
  readonly kinds: readonly Kind[];
  readonly before: readonly string[];
  readonly cases: readonly { readonly when: string; readonly flags: string }[];
}

const INSTALL_MOVES: readonly Change[] = [
  {
    kinds: ["read", "write"],
    before: [],
    cases: [{
      when: '-n "${HEDDLE_INSTALL_INTO:-}"',
      flags: '--allow-read="$HEDDLE_INSTALL_INTO${HEDDLE_INSTALL_READ:+,$HEDDLE_INSTALL_READ}" ' +
        '--allow-write="$HEDDLE_INSTALL_INTO"',
    }],
  },
  {
    kinds: ["run"],
    before: [],
    cases: [{
      when: '-n "${HEDDLE_INSTALL_UV:-}"',
      flags: '--allow-run="$root/bin/heddle-shim,/usr/bin/ldd,$HEDDLE_INSTALL_UV"',
    }],
  },
];

const FETCH_MOVES: Change = {
  kinds: ["read", "write"],
  before: [],
  cases: [{
    when: '-n "${HEDDLE_FETCH_INTO:-}"',
    flags: '--allow-read="$HEDDLE_FETCH_INTO${HEDDLE_FETCH_READ:+,$HEDDLE_FETCH_READ}" ' +
      '--allow-write="$HEDDLE_FETCH_INTO"',
  }],
};

const TOKEN_MOVES: Change = {
  kinds: ["read"],
  before: [],
  cases: [{
    when: '-n "${HEDDLE_JOIN_TOKEN_FILE:-}"',
    flags: '--allow-read="$HEDDLE_JOIN_TOKEN_FILE"',
  }],
};

/** Which files ctl may read and write: its configuration, and what a command is given. */
function ctlMoves(set: PermissionSet): Change {
  const others = inQuotes(listed(set, "read").map((path) => `,${path}`).join(""));
  return {
    kinds: ["read"],
    before: [
      "config=${XDG_CONFIG_HOME:-${HOME:-/root}/.config}/heddle",
      'may="${HEDDLE_CA:-$config/ca}${HEDDLE_TLS:+,$HEDDLE_TLS}"',
      // These two of them ask control.
      'case "${2:-} ${3:-}" in "ca strike" | "ca struck") asks=1 ;; *) asks= ;; esac',
      "configs=$config",
      '[ -z "${HEDDLE_CTL_CONFIG:-}" ] || configs=$(dirname "$HEDDLE_CTL_CONFIG")',
      "token=${HEDDLE_TOKEN_FILE:-}",
      "last=",
      'for each in "$@"; do',
      '  [ "$last" != --token-file ] || token=$each',
      "  case $each in --token-file=*) token=${each#*=} ;; esac",
      "  last=$each",
      "done",
      "given=${token:+,$token}",
      // Fleets that `up` runs: ctl may not look for them, and names them when nothing answers.
      "ups=",
      'for each in "$root"/.heddle/*/up.json; do',
      '  [ ! -f "$each" ] || ups="$ups:${each%/up.json}"',
      "done",
      'export HEDDLE_UPS="${ups#:}"',
      'case "${2:-}" in',
      "  plan | apply | doctor | bench)",
      '    for each in "$@"; do',
      // $1 is the entry.
      '      [ "$each" = "$1" ] || [ ! -f "$each" ] || given="$given,$each"',
      "    done",
      "    ;;",
      "esac",
    ],
    cases: [
      {
        // The files themselves say which of them is used, and only it is written.
        when: '"${2:-} ${3:-}" = "config use"',
        flags: ["read", "write"].map((kind) => `--allow-${kind}="$configs${others}"`).join(" "),
      },
      {
        // The authority's folder and that of one certificate, and nothing else. $1 is the entry.
        when: '"${2:-}$asks" = ca',
        flags: '--allow-read="$may" --allow-write="$may"',
      },
      {
        when: '-n "${HEDDLE_CTL_CONFIG:-}"',
        flags: '--allow-read="$(dirname "$HEDDLE_CTL_CONFIG")$given"',
      },
      { when: '-d "$config"', flags: `--allow-read="$config${others}$given"` },
      {
        when: '-n "$given"',
        flags: `--allow-read="${others === "" ? "${given#,}" : `${others.slice(1)}$given`}"`,
      },
    ],
  };
}

/** Where state is, and for a program that has commands that run once what these name. */
function stateMoves(program: Program, set: PermissionSet): Change {
  const moved = {
    when: '-n "${HEDDLE_STATE:-}"',
    read: "$HEDDLE_STATE${HEDDLE_READ:+,$HEDDLE_READ}",
    write: "$HEDDLE_STATE",
  };
  if (!program.namesPaths) {
    const flags = `--allow-read="${moved.read}" --allow-write="${moved.write}"`;
    return { kinds: ["read", "write"], before: [], cases: [{ when: moved.when, flags }] };
  }
  const usual = (kind: Kind) => inQuotes(listed(set, kind).join(","));
  const stays = { when: '-n "$reads"', read: usual("read"), write: usual("write") };
  return {
    kinds: ["read", "write"],
    before: NAMED_PATHS,
    cases: [moved, stays].map(({ when, read, write }) => ({
      when,
      flags: `--allow-read="${read}$reads" --allow-write="${write}$writes"`,
    })),
  };
}

function smiMoves(program: Program, set: PermissionSet): Change {
  const runs = listed(set, "run");
  const others = runs.filter((path) => !path.endsWith("/nvidia-smi")).map((path) => `${path},`);
  const named = program.namesPaths ? "$runs" : "";
  return {
    kinds: ["run"],
    before: [],
    cases: [
      {
        when: '-n "${HEDDLE_NVIDIA_SMI:-}"',
        flags: `--allow-run="${inQuotes(others.join(""))}$HEDDLE_NVIDIA_SMI${named}"`,
      },
      ...(program.namesPaths
        ? [{ when: '-n "$runs"', flags: `--allow-run="${inQuotes(runs.join(","))}$runs"` }]
        : []),
    ],
  };
}

function changesOf(program: Program, set: PermissionSet): readonly Change[] {
  const changes: Change[] = [];
  if (program.moves === "state") changes.push(stateMoves(program, set));
  if (program.moves === "fetch") changes.push(FETCH_MOVES);
  if (program.moves === "install") changes.push(...INSTALL_MOVES);
  if (program.moves === "token") changes.push(TOKEN_MOVES);
  if (program.moves === "ctl") changes.push(ctlMoves(set));
  if (program.runsNvidiaSmi) changes.push(smiMoves(program, set));
  return changes;
}

function listed(set: PermissionSet, kind: Kind): readonly string[] {
  const allowed = set[kind]?.allow;
  return allowed === undefined || allowed === "all" ? [] : allowed;
}

/** The lines of one change. Where none of its cases holds, the repository's set stands as it is. */
function choose(change: Change, set: PermissionSet, form: LauncherForm): readonly string[] {
  const own: { [K in Kind]?: PermissionSet[K] } = {};
  for (const kind of change.kinds) {
    const allow = set[kind]?.allow;
    if (allow !== undefined) own[kind] = { allow };
  }
  const flags = flagsOf({ set: own, unstable: [] }).filter((flag) => flag !== "--deny-import");
  return [
    ...change.before,
    ...change.cases.flatMap(({ when, flags }, index) => [
      `${index === 0 ? "if" : "elif"} [ ${when} ]; then`,
      `  set -- ${flags} "$@"`,
    ]),
    ...(form === "release" && flags.length > 0
      ? ["else", `  set -- ${flags.map(word).join(" ")} "$@"`]
      : []),
    "fi",
  ];
}

/** The set without what a change has already said. */
function fixedPart(set: PermissionSet, changes: readonly Change[]): PermissionSet {
  const fixed: { [K in Kind]?: PermissionSet[K] } = { ...set };
  for (const kind of changes.flatMap(({ kinds }) => kinds)) {
    const { allow: _said, ...rest } = set[kind] ?? {};
    fixed[kind] = rest;
  }
  return fixed;
}

function start(program: Program, fixed: Grants, form: LauncherForm): readonly string[] {
  if (form === "repository") {
    return [
      `exec "\${HEDDLE_DENO:-deno}" run --config "$root/deno.json" -P=${program.room} \\`,
      // With --cached-only, a set that does not mention imports grants all of them.
      `  ${CLOSED}${fixed.set.import === undefined ? " --deny-import" : ""} "$@"`,
    ];
  }
  return [
    'exec "$root/runtime/deno" run \\',
    `  ${CLOSED} ${ALONE} \\`,
    ...flagsOf(fixed).map((flag) => `  ${word(flag)} \\`),
    '  "$@"',
  ];
}

/** One word of a shell's command line. */
function word(text: string): string {
  return /^[\w.,:/=-]+$/.test(text) ? text : `"${inQuotes(text)}"`;
}

/** For between double quotes. */
function inQuotes(text: string): string {
  return text.replace(/["$`\\]/g, (sign) => `\\${sign}`).replaceAll(ROOT, () => "$root");
}
