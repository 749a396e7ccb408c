#!/bin/sh
# Starts a build of the commit, unless there is one, and waits for its end. One that goes on when this is stopped is found by the
# next fetch.
set -eu
. ./build.sh

deadline_s=$(($(date +%s) + WAIT_SECONDS))
find_build
case $status in
QUEUED | PENDING | WORKING | SUCCESS) echo "build $build of $COMMIT is $status already" ;;
*)
    started=$(builds triggers run "$TRIGGER" --sha="$COMMIT" --substitutions="_CHANNEL=$PVN_RELEASE_CHANNEL" \
        --format='value[separator="|"](metadata.build.id,metadata.build.status,metadata.build.logUrl)')
    IFS='|' read -r build status log <<END
$started
END
    [ -n "$build" ] || {
        echo "\`gcloud builds triggers run\` names no build: $started" >&2
        exit 1
    }
    echo "build $build of $COMMIT was started"
    ;;
esac
echo "log: $log"

last=
while :; do
    [ "$status" = "$last" ] || echo "build $build: $status"
    last=$status
    case $status in
    SUCCESS) exit 0 ;;
    QUEUED | PENDING | WORKING) ;;
    *)
        echo "build $build of $COMMIT ended with $status${reason:+: $reason}; its log: $log" >&2
        exit 1
        ;;
    esac
    if [ "$(date +%s)" -ge "$deadline_s" ]; then
        # Nothing failed: as long as it goes on, fetch says so and nothing else is started.
        echo "build $build of $COMMIT is still $status after $WAIT_SECONDS s; its log: $log" >&2
        exit 75
    fi
    sleep "$POLL_SECONDS"
    # A question that is not answered is asked again, until the deadline.
    describe_build || echo "how build $build stands cannot be known" >&2
done
