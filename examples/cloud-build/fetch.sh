#!/bin/sh
# Has the commit of the release been built? Whoever started its build. One that failed is not started again by itself: it would
# fail every few minutes.
set -eu
. ./build.sh

find_build
version="{\"version\": \"$(quoted "$PVN_SERVICE_VERSION")\", \"active\": true}"
case $status in
'') is=PENDING version='' message="$COMMIT has not been built${stray:+; build $stray of it has no _CHANNEL=$PVN_RELEASE_CHANNEL and does not count}" ;;
SUCCESS) is=SUCCEEDED message="build $build of $COMMIT succeeded" ;;
QUEUED | PENDING | WORKING) is=PENDING message="build $build of $COMMIT is $status" ;;
*)
    describe_build
    is=FAILED message="build $build of $COMMIT ended with $status${reason:+: $reason}"
    ;;
esac
link=
[ -z "$log" ] || link="{\"type\": \"LOG\", \"name\": \"log of $(quoted "$build")\", \"url\": \"$(quoted "$log")\"}"
printf '{"objects": [{"name": "%s", "objectType": "CloudBuild", "status": "%s", "message": "%s", "versions": [%s], "externalLinks": [%s]}]}\n' \
    "$(quoted "$TRIGGER")" "$is" "$(quoted "$message")" "$version" "$link"
