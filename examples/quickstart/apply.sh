#!/bin/sh
# Do it.
set -eu
. ./wanted.sh

mkdir -p site
# A name that no other run has: each release channel applies by itself.
new=site/.$$.new
trap 'rm -f "$new"' EXIT
for file in $files; do
    if [ -e "site/$file" ] && wanted "$file" | cmp -s - "site/$file"; then
        continue
    fi
    wanted "$file" >"$new"
    mv "$new" "site/$file"
    echo "wrote site/$file"
done
