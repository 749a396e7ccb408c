#!/bin/sh
# "Deploys" the desired version to this channel.
set -eu
mkdir -p deployed
echo "$PVN_SERVICE_VERSION in $COLOUR" >"deployed/.$PVN_RELEASE_CHANNEL.new"
mv "deployed/.$PVN_RELEASE_CHANNEL.new" "deployed/$PVN_RELEASE_CHANNEL"
echo "$PVN_RELEASE_CHANNEL now holds $PVN_SERVICE_VERSION"
