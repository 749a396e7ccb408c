#!/bin/sh
# Applies the plan that was approved. A plan that is stale, or a state that somebody else has locked, is no failure: exit 75
# makes pvn look again.
set -eu
. ./tool.sh

initialize
errors=$(mktemp)
trap 'rm -f "$errors"' EXIT
code=0
"$tool" apply -no-color -input=false "$plan" 2>"$errors" || code=$?
cat "$errors" >&2
if [ "$code" -ne 0 ] && grep -qE 'Saved plan is stale|Saved plan does not match the given state|Error acquiring the state lock' "$errors"; then
    exit 75
fi
exit "$code"
