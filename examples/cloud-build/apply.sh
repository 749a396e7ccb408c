#!/bin/sh
# Starts a build of the commit, unless there is one, and waits for its end. One that goes on when this is stopped is found by the
# next fetch.
set -eu
. ./build.sh

# Longest time that the request may take, in seconds.
request_s=60
# While it is not known what became of a request: when it was made, and the newest build before it, if any. Until then no other
# one is made. In the channel's own directory on this machine, so that the next attempt knows too.
asked=${PVN_INSTANCE_DIR:-${TMPDIR:-/tmp}}/asked.$COMMIT

# Asks for a build, once. `gcloud builds triggers run` asks again by itself when the answer is lost or says 503, and two builds
# are made of that. Sets build, or leaves it empty if it is not known whether there is one.
ask() {
    command -v curl >/dev/null || {
        echo 'there is no curl, which asks for builds: install it beside gcloud' >&2
        exit 1
    }
    token=$(gcloud auth print-access-token) || {
        echo "no token to start a build with: see above what \`gcloud auth print-access-token\` says" >&2
        exit 1
    }
    url=$(gcloud config get api_endpoint_overrides/cloudbuild 2>/dev/null)
    url=${url:-https://cloudbuild.googleapis.com/}
    url=${url%/}/v1/projects/$PROJECT/locations/$REGION/triggers/$TRIGGER:run
    body="{\"triggerId\": \"$(quoted "$TRIGGER")\", \"source\": {\"commitSha\": \"$COMMIT\", \"substitutions\": {\"_CHANNEL\": \"$PVN_RELEASE_CHANNEL\"}}}"
    echo "$(date +%s) $build" >"$asked"
    build=
    # The token goes in by standard input: everybody can read the arguments of a program.
    said=$(printf 'header = "Authorization: Bearer %s"\n' "$token" | curl --config - --silent --show-error --retry 0 \
        --max-time "$request_s" --header 'Content-Type: application/json' --data "$body" --write-out '\n%{http_code}' "$url" 2>&1) && code=0 || code=$?
    http=$(printf '%s\n' "$said" | tail -n 1)
    [ "$code" = 0 ] || http=
    case $code in
    # No name, no connection: it was not even asked.
    5 | 6 | 7)
        rm -f "$asked"
        printf '%s\n' "$said" | head -n 1 >&2
        exit 75
        ;;
    esac
    case $http in
    200)
        # Of all fields only the address of the log is the build's alone, and its last part is the build.
        build=$(printf '%s' "$said" | tr -d '\n' | sed -n 's|.*"logUrl": *"[^"?]*/\([0-9A-Za-z-]*\)[?"].*|\1|p')
        ;;
    # Refused: there is no build.
    429)
        rm -f "$asked"
        echo "no build of $COMMIT was started: there are too many requests; tried again later" >&2
        exit 75
        ;;
    4?? | 3??)
        [ "$http" = 408 ] || {
            rm -f "$asked"
            printf '%s\n' "$said" >&2
            echo "no build of $COMMIT was started: ($http) $(printf '%s' "$said" | sed -n 's/.*"message": *"\([^"]*\)".*/\1/p' | head -n 1)" >&2
            exit 1
        }
        ;;
    esac
    [ -n "$build" ] || printf '%s\n' "$said" >&2
}

# Looks for the build of the last request, for as long as it may take to be seen. Sets build, or leaves it empty.
look_for_it() {
    read -r asked_s before <"$asked"
    echo "whether a build of $COMMIT was started is not known: looks for it" >&2
    while [ -z "$build" ] || [ "$build" = "$before" ]; do
        build=
        [ "$(date +%s)" -lt "$((asked_s + LOST_SECONDS))" ] || break
        sleep "$POLL_SECONDS"
        find_build
    done
    rm -f "$asked"
}

deadline_s=$(($(date +%s) + WAIT_SECONDS))
find_build
case $status in
QUEUED | PENDING | WORKING | SUCCESS) echo "build $build of $COMMIT is $status already" ;;
*)
    [ -z "$stray" ] || echo "build $stray of $COMMIT has no _CHANNEL=$PVN_RELEASE_CHANNEL and does not count"
    failed=$build
    if [ -s "$asked" ]; then look_for_it; else build=; fi
    if [ -z "$build" ]; then
        build=$failed
        ask
        [ -n "$build" ] || look_for_it
        if [ -z "$build" ]; then
            echo "no build of $COMMIT was seen in the $LOST_SECONDS s after one was asked for; asks again" >&2
            exit 75
        fi
    fi
    echo "build $build of $COMMIT was started"
    describe_build || status=QUEUED log='not known yet'
    ;;
esac
rm -f "$asked"
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
