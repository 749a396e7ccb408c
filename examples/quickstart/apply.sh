#!/bin/sh
# Do it.
set -eu
. ./wanted.sh

mkdir -p site
for file in $files; do
    if [ -e "site/$file" ] && wanted "$file" | cmp -s - "site/$file"; then
        continue
    fi
    wanted "$file" >"site/.$file.new"
    mv "site/.$file.new" "site/$file"
    echo "wrote site/$file"
done
