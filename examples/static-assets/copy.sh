#!/bin/sh
# Puts the assets in place: whole or not at all, whoever looks in between. Each channel has a folder of its name.
set -eu
to=$PVN_RELEASE_CHANNEL
rm -rf "$to.new"
cp -R assets "$to.new"
printf '%s\n' "$REVISION" >"$to.new/revision.txt"
rm -rf "$to.old"
[ ! -e "$to" ] || mv "$to" "$to.old"
mv "$to.new" "$to"
rm -rf "$to.old"
echo "$to/ holds revision $REVISION"
