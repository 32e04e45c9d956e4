#!/bin/sh
# Runs a command with its output in a file, which outlives whoever started it.
log=$1
shift
exec "$@" >>"$log" 2>&1
