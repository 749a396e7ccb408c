#!/bin/sh
# Tells people where the site is.
set -eu
printf '{"outputs": [{"name": "site", "text": "file://%s/%s/index.html"}]}\n' "$PWD" "$PVN_RELEASE_CHANNEL"
