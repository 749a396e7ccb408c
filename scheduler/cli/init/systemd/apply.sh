#!/bin/sh
# Do it. May be killed at any moment and run again.
set -eu
. ./unit.sh

mkdir -p "$(dirname "$file")"
if ! wanted | cmp -s - "$file"; then
    new=$file.$$.new
    trap 'rm -f "$new"' EXIT
    wanted >"$new"
    mv "$new" "$file"
    echo "wrote $file"
fi
systemctl --user daemon-reload
systemctl --user enable "$unit"
# Also where it runs: with what the file says now.
systemctl --user restart "$unit"
echo "$unit runs"
