#!/bin/sh
# Runs in the machine once it is up, and tells over its second serial port what became of each model's
# engine: a line each of a name, a tab, and what was found. It powers the machine off when it is done.
exec >/dev/ttyS1 2>&1
export HOME=/root HEDDLE_CTL_CONFIG=/etc/heddle/ctl.yaml
PATH=/opt/heddle/bin:$PATH
shards=/var/lib/heddle/agent/shards

say() { printf '%s\t%s\n' "$1" "$(printf '%s' "$2" | tr '\n\t' '  ')"; }

# What the agent keeps of a model's shards, once one is as it should be; at most for five minutes.
state_of() {
  left=100
  while [ $left -gt 0 ]; do
    found=$(cat "$shards"/s-"$1"-*/state.json 2>/dev/null)
    case $found in
      *"\"kind\": \"$2\""*) break ;;
    esac
    left=$((left - 1))
    sleep 3
  done
  printf '%s' "$found"
}

say cgroup "$(stat -fc %T /sys/fs/cgroup)"
say systemd "$(systemctl --version | head -n 1)"
say kernel "$(uname -r)"
say eat "$(state_of eat failed)"
say child_eats "$(state_of child-eats failed)"
say limited_pin "$(state_of limited-pin failed)"
say pin "$(state_of pin ready)"
say log "$(cat "$shards"/s-pin-*/run-*/log)"
say explain "$(timeout 90 heddle explain eat)"
say end ok
systemctl poweroff
