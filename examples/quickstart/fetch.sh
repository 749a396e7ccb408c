#!/bin/sh
# Is there work to do? Exit 0: no. 2: yes. Anything else: the question could not be answered.
# A shell ends with 2 of its own, too, when a script is broken: a 2 that this one does not mean is an error.
trap '[ $? != 2 ] || [ -n "${work:-}" ] || exit 1' EXIT
set -eu
. ./wanted.sh

work=
for file in $files; do
    if [ ! -e "site/$file" ]; then
        echo "site/$file is missing"
        work=yes
    elif ! wanted "$file" | cmp -s - "site/$file"; then
        echo "site/$file is not as it should be"
        work=yes
    fi
done
[ -z "$work" ] || exit 2
