#!/bin/sh
# Tells how to break it.
set -eu
printf '{"outputs": [{"name": "to break it", "text": "kill the process whose number stands first in %s/run/%s/web.1"}]}\n' "$PWD" "$PVN_RELEASE_CHANNEL"
