#!/bin/sh
# Shows people the log of the build and the trigger.
set -eu
. ./build.sh

find_build
trigger="https://console.cloud.google.com/cloud-build/triggers;region=$REGION/edit/$trigger_id?project=$PROJECT"
printf '{"outputs": [{"name": "log", "text": "%s"}, {"name": "trigger", "text": "%s"}]}\n' \
    "$(quoted "${log:-no build of $COMMIT yet}")" "$(quoted "$trigger")"
