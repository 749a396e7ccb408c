#!/bin/sh
# Makes the bucket what the directory is. What was shown is what is done: if it would be anything else by now, exit 75 makes pvn
# look again.
trap 'rm -rf "${work:-}"' EXIT
set -eu
. ./bucket.sh

compare
if [ -e "$own/shown.txt" ] && ! cmp -s "$own/shown.txt" "$work/explanation"; then
    echo 'the directory or the bucket has changed since they were compared' >&2
    exit 75
fi
storage rsync --recursive --delete-unmatched-destination-objects --checksums-only --no-user-output-enabled "$SITE" "$to"
cat "$work/sorted"
echo "$to has the $(($(wc -l <"$work/here"))) files of $SITE"
