#!/bin/sh
# Exit 0: this channel holds the desired version. 2: it does not.
# A shell ends with 2 of its own, too, when a script is broken: a 2 that this one does not mean is an error.
trap '[ $? != 2 ] || [ -n "${work:-}" ] || exit 1' EXIT
set -eu
[ "$(cat "deployed/$PVN_RELEASE_CHANNEL" 2>/dev/null)" = "$PVN_SERVICE_VERSION in $COLOUR" ] || {
    work=yes
    exit 2
}
