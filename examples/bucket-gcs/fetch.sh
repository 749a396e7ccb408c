#!/bin/sh
# Is there work to do? 0 no, 2 yes, else an error, in the words of the `gcloud` program.
# A shell ends with 2 of its own, too, when a script is broken; that is no work.
trap '[ $? != 2 ] || [ "${is_work:-}" = yes ] || { rm -rf "${work:-}"; exit 1; }; rm -rf "${work:-}"' EXIT
set -eu
. ./bucket.sh

compare
if [ -s "$work/reasons" ]; then
    cat "$work/explanation"
    cp "$work/explanation" "$own/explanation.txt"
    is_work=yes
    exit 2
fi
echo "$to has exactly the $(($(wc -l <"$work/here"))) files of $SITE"
