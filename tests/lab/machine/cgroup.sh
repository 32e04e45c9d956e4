#!/bin/sh
# Control groups of the lab's nodes, in every hierarchy in which systemd keeps its own. Deno itself
# may not look below /sys and /proc.
#
#   enter GROUP COMMAND...   run COMMAND in GROUP, made if need be
#   remove GROUP             remove GROUP and what is below it; its processes must have ended
#   started PID              when process PID was started, by the kernel
set -u
verb=$1 group=$2
shift 2

roots=''
for name in systemd unified; do
  [ ! -d "/sys/fs/cgroup/$name" ] || roots="$roots /sys/fs/cgroup/$name"
done
[ -n "$roots" ] || roots=/sys/fs/cgroup

case $verb in
  enter)
    for root in $roots; do
      mkdir -p "$root/$group" && echo $$ >"$root/$group/cgroup.procs" || exit 1
    done
    exec "$@"
    ;;
  remove)
    for root in $roots; do
      # The kernel takes a moment to forget the last process of a group.
      for round in 1 2 3 4 5 6 7 8 9 10; do
        [ -d "$root/$group" ] || break
        find "$root/$group" -depth -type d -exec rmdir {} + 2>/dev/null && break
        sleep 0.2
      done
      # What all runs share goes with the last one.
      rmdir "$root/${group%/*}" 2>/dev/null
    done
    exit 0
    ;;
  started)
    # Fields count from behind the name, which may hold anything.
    { IFS= read -r line <"/proc/$group/stat"; } 2>/dev/null || exit 1
    set -- ${line##*) }
    echo "${20}"
    ;;
esac
