#!/bin/sh
# Runs the ENTRYPOINT and CMD of the Dockerfile here, without a container.
set -eu
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

pvn-wrapper exec --report - --out plan="$work/plan.txt" --timeout 10m -- ./task.sh "$work/plan.txt"
