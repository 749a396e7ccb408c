#!/bin/sh
# Is there work to do? terraform's own codes say it: 0 no changes, 2 changes, 1 error.
set -eu
. ./tool.sh

initialize
code=0
"$tool" plan -detailed-exitcode -no-color -input=false -out="$plan" || code=$?
if [ "$code" -ne 1 ]; then
    # What it comes to goes first: pvn shows the first line wherever there is room for one.
    shown=$("$tool" show -no-color "$plan")
    { printf '%s\n' "$shown" | grep '^Plan:' || true; printf '%s\n' "$shown"; } >"$PVN_INSTANCE_DIR/tf.txt"
fi
exit "$code"
