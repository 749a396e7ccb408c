#!/bin/sh
# Is there work to do? Exit 0: no. 2: yes, and what would run. Anything else: nobody could tell.
trap '[ $? != 2 ] || [ -n "${work:-}" ] || exit 1' EXIT
set -eu
. ./database.sh

files=$(pending)
[ -n "$files" ] || exit 0
work=yes
{
    echo "$(echo "$files" | wc -l) to apply: $(echo "$files" | xargs -n1 basename | xargs)"
    for file in $files; do
        printf '\n-- %s\n' "$file"
        cat "$file"
    done
} | tee "$PVN_INSTANCE_DIR/pending.sql"
exit 2
