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

# Only what differs, by one call of many uploads at a time. The tree of links has the names that the objects get.
from=$(cd "$SITE" && pwd)
while IFS= read -r path; do
    link=$work/changed/$path
    mkdir -p "${link%/*}"
    ln -s "$from/$path" "$link"
done <"$work/upload"
to=s3://$BUCKET/$prefix/
[ ! -s "$work/upload" ] || (cd "$work/changed" && aws s3 cp --recursive --no-progress . "$to")
# Last, since pages may still refer to it. Whatever is to be uploaded has been, so sizes will do.
[ ! -s "$work/delete" ] || aws s3 sync --delete --size-only --no-progress "$SITE" "$to"

# Were it stored first, an apply that ends half-way would look like one that is done.
there >"$work/there"
awk -v work="$work" '
    { path = substr($0, index($0, "\t") + 1); first = substr($0, 1, index($0, "\t") - 1) }
    FILENAME == work "/there" { etag[path] = first; next }
    path in etag { print first "\t" etag[path] "\t" path }' "$work/there" "$work/here" >"$work/record"
aws s3 cp --only-show-errors --content-type text/plain "$work/record" "s3://$BUCKET/$record"
echo "$to has the $(($(wc -l <"$work/here"))) files of $SITE"
