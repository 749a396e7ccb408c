#!/bin/sh
# With --dry-run: what would be copied or deleted; exit 0: nothing. 2: something. Without: does it. May be killed at any
# moment and run again: rsync writes beside a file and puts it in its place when it is whole.
trap '[ $? != 2 ] || [ -n "${work:-}" ] || exit 1' EXIT
set -eu
command -v rsync >/dev/null || {
    echo 'rsync is not on PATH: install it' >&2
    exit 127
}
export RSYNC_RSH='ssh -o BatchMode=yes'

case $TARGET in
*:*) ;;
*) [ "${1:-}" = --dry-run ] || mkdir -p "$TARGET" ;;
esac
# By what is in the files, not by their times: those differ from checkout to checkout.
changes=$(rsync --recursive --links --perms --checksum --delete --itemize-changes "$@" site/ "$TARGET/")
# A directory whose time alone differs is no change.
changes=$(printf '%s\n' "$changes" | grep -v '^\.d\.\.t\.* ' || true)
[ -n "$changes" ] || exit 0
printf '%s\n' "$(printf '%s\n' "$changes" | wc -l) changes:" "$changes"
[ "${1:-}" = --dry-run ] || exit 0
work=yes
exit 2
