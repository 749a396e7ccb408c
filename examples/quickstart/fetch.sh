#!/bin/sh
# Is there work to do? Exit 0: no. 2: yes. Anything else: the question could not be answered.
set -eu
. ./wanted.sh

work=0
for file in $files; do
    if [ ! -e "site/$file" ]; then
        echo "site/$file is missing"
        work=2
    elif ! wanted "$file" | cmp -s - "site/$file"; then
        echo "site/$file is not as it should be"
        work=2
    fi
done
exit "$work"
