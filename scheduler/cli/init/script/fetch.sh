#!/bin/sh
# Is there work to do? Exit 0: no. 2: yes. Anything else: the question could not be answered, and nothing is done.
# A shell ends with 2 of its own, too, when a script is broken: a 2 that this one does not mean is an error.
trap '[ $? != 2 ] || [ -n "${work:-}" ] || exit 1' EXIT
set -eu
. ./target.sh

# The first line that is printed is what people see.
if [ ! -e "$target" ]; then
    echo "$target is missing"
    work=yes
elif [ "$(cat "$target")" != "$MESSAGE" ]; then
    echo "$target does not say \"$MESSAGE\""
    work=yes
fi
[ -z "${work:-}" ] || exit 2
