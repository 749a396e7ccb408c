#!/bin/sh
# Is there work to do? terraform's own codes say it: 0 no changes, 2 changes, 1 error.
set -eu
. ./tool.sh

rm -f tf.plan tf.txt
"$tool" init -no-color
code=0
"$tool" plan -detailed-exitcode -no-color -input=false -out=tf.plan || code=$?
if [ -e tf.plan ]; then
    # What it comes to goes first: pvn shows the first line wherever there is room for one.
    shown=$("$tool" show -no-color tf.plan)
    { printf '%s\n' "$shown" | grep '^Plan:' || true; printf '%s\n' "$shown"; } >tf.txt
fi
exit "$code"
