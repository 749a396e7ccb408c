#!/bin/sh
# Makes the bucket what the directory is. What was shown is what is done: if it would be anything else by now, exit 75 makes pvn
# look again. What changes from then on is left alone, and is for the next look.
trap 'rm -rf "${work:-}"' EXIT
set -eu
. ./bucket.sh

# Most objects that are deleted at a time.
at_once=8

changed() {
    echo "$1 has changed since it was compared: nothing but what was shown is done, and pvn looks again" >&2
    exit 75
}

compare
if [ -e "$own/shown.txt" ] && ! cmp -s "$own/shown.txt" "$work/explanation"; then
    echo 'the directory or the bucket has changed since they were compared' >&2
    exit 75
fi

# Only what differs, by one call of many uploads at a time, and from a copy: what somebody writes to the directory meanwhile was
# shown to nobody. `rsync` without deletion uploads what is in the copy and nothing else.
if [ -s "$work/upload" ]; then
    while IFS= read -r path; do
        copy=$work/changed/$path
        mkdir -p "${copy%/*}"
        cp -L "$SITE/$path" "$copy" || changed "$SITE/$path"
    done <"$work/upload"
    digests "$work/changed" >"$work/copied"
    torn=$(grep -v -x -F -f "$work/here" "$work/copied" | head -n 1 | cut -f 2)
    [ -z "$torn" ] || changed "$SITE/$torn"
    (cd "$work/changed" && storage rsync --recursive --checksums-only --no-user-output-enabled . "$to")
fi

# Last, since pages may still refer to them; each object only as it was shown, even if it changes at this very moment.
: >"$work/kept"
if [ -s "$work/delete" ]; then
    export work to
    tr '\n' '\0' <"$work/delete" | xargs -0 -n 1 -P "$at_once" ./delete.sh || {
        echo "not all objects could be deleted in $to" >&2
        exit 1
    }
fi
cat "$work/sorted"
[ ! -s "$work/kept" ] || changed "$to/$(head -n 1 "$work/kept")"
echo "$to has the $(($(wc -l <"$work/here"))) files of $SITE"
