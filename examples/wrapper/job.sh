#!/bin/sh
# Runs the containers of job.yaml here, one after the other, without a cluster.
set -eu
cd "$(dirname "$0")"
pvn=$(mktemp -d)
trap 'rm -rf "$pvn"' EXIT

# The init container.
pvn-wrapper install "$pvn"

# The container. The kubelet makes the termination log and shows what is in it.
PVN_TERMINATION_LOG="$pvn/termination-log"
export PVN_TERMINATION_LOG
: >"$PVN_TERMINATION_LOG"
"$pvn/pvn-wrapper" exec --report - --out plan="$pvn/plan.txt" -- ./task.sh "$pvn/plan.txt"
echo "termination message: $(cat "$PVN_TERMINATION_LOG")"
