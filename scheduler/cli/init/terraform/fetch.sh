#!/bin/sh
# Is there work to do? terraform's own codes say it: 0 no changes, 2 changes, 1 error.
# A shell ends with 2 of its own, too, when a script is broken: a 2 that terraform does not mean is an error.
trap '[ $? != 2 ] || [ "${code:-}" = 2 ] || exit 1' EXIT
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
