#!/bin/sh
# Do it. May be killed at any moment and run again: what is half done is never seen.
set -eu
. ./target.sh

mkdir -p "$(dirname "$target")"
new=$target.$$.new
trap 'rm -f "$new"' EXIT
printf '%s\n' "$MESSAGE" >"$new"
mv "$new" "$target"
echo "wrote $target"
