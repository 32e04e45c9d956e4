/**
 * What a command that runs once and exits may touch besides: the very paths that its command line
 * names. It must be the first word: further back a flag's value could look like one, and the agent
 * that runs for long is never given anything so.
 */

/**
 * Shell that leaves in $reads, $writes and $runs what was named, each after a comma. $1 is the entry.
 * Deno parts paths at commas, so that one with a comma would be two others: it is not given.
 */
export const NAMED_PATHS: readonly string[] = [
  "reads= writes= runs= last=",
  'path() { case $1 in *,* | "" | -) ;; *) printf \',%s\' "$1" ;; esac; }',
  'case "${2:-}" in',
  "  diagnose)",
  '    for each in "$@"; do',
  "      # The entry and the word itself are no logs.",
  '      case $last in ?*) case $each in -*) ;; *) reads=$reads$(path "$each") ;; esac ;; esac',
  '      [ "$each" != diagnose ] || last=$each',
  "    done",
  "    ;;",
  "  --diagnose | --diagnose=*)",
  "    case $2 in --diagnose) logs=${3:-}, ;; *) logs=${2#*=}, ;; esac",
  '    while [ -n "$logs" ]; do',
  '      reads=$reads$(path "${logs%%,*}")',
  "      logs=${logs#*,}",
  "    done",
  "    ;;",
  "  inventory | --inventory | --inventory=*)",
  '    for each in "$@"; do',
  "      case $each in",
  "        --*=*) pair=$each last= ;;",
  "        -*) pair= last=$each ;;",
  "        *) pair=$last=$each last= ;;",
  "      esac",
  '      named=$(path "${pair#*=}")',
  "      case $pair in",
  "        --capture=*) reads=$reads$named writes=$writes$named ;;",
  "        --config=* | --replay=* | --sysfs=*) reads=$reads$named ;;",
  "        --nvidia-smi=none) ;;",
  "        --nvidia-smi=*) runs=$runs$named ;;",
  "      esac",
  "    done",
  "    ;;",
  "esac",
];
