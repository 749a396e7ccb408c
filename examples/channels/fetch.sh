#!/bin/sh
# Exit 0: this channel holds the desired version. 2: it does not.
set -eu
[ "$(cat "deployed/$PVN_RELEASE_CHANNEL" 2>/dev/null)" = "$PVN_SERVICE_VERSION in $COLOUR" ] || exit 2
