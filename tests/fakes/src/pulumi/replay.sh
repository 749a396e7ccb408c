#!/bin/sh
# Does what the real pulumi was seen to do, codes and texts, as the files in $WORLD say.
echo "$*" >>"$WORLD/calls"
echo "$GREETING,$HOME,$PULUMI_SKIP_UPDATE_CHECK" >"$WORLD/environment"

# Before 3.227 every failure ended with 255.
fail() {
    [ ! -e "$WORLD/before-3.227" ] || exit 255
    exit "$1"
}

# Waits as long as the file is there, a minute at most: for what comes in the middle of an `up`.
wait_at() {
    turns=0
    while [ -e "$WORLD/$1" ] && [ "$turns" -lt 1200 ]; do
        : >"$WORLD/at-$1"
        turns=$((turns + 1))
        sleep 0.05
    done
}

case $* in
version)
    cat "$WORLD/version" 2>/dev/null || echo v3.260.0
    exit 0
    ;;
'whoami --non-interactive')
    if [ -e "$WORLD/logged-out" ]; then
        cat "$WORLD/logged-out" >&2
        fail 1
    fi
    echo somebody
    exit 0
    ;;
esac

for word; do
    [ "$before" != --stack ] || stack=$word
    before=$word
done
if [ "$stack" != "${STACK:-dev}" ]; then
    echo "error: no stack named '$stack' found" >&2
    fail 6
fi

case $* in
'preview --json --refresh --non-interactive --stack '*)
    cat "$WORLD/preview"
    [ ! -e "$WORLD/preview-ends-with" ] || exit "$(cat "$WORLD/preview-ends-with")"
    ;;
'up --yes --skip-preview --refresh --non-interactive --stack '*)
    if [ -e "$WORLD/lock" ]; then
        cat "$WORLD/lock" >&2
        fail 1
    fi
    echo 'Updating (dev):'
    wait_at before
    if [ -e "$WORLD/slow" ]; then
        # Asked to stop, it lets the running resource end.
        trap 'stopped=yes; echo TERM >>"$WORLD/signals"' TERM
        : >"$WORLD/began"
        while [ -z "$stopped" ]; do
            sleep 0.05 &
            wait $!
        done
        wait
        printf 'Diagnostics:\n  pulumi:pulumi:Stack (p-dev):\n    error: update canceled\n'
        fail 1
    fi
    if [ -e "$WORLD/up-fails" ]; then
        cat "$WORLD/up-fails"
        fail 1
    fi
    cp "$WORLD/settled" "$WORLD/preview"
    echo "$PVN_SERVICE_VERSION" >>"$WORLD/ups"
    wait_at after
    printf 'Resources:\n    ~ 1 updated\n    1 unchanged\n'
    ;;
'stack output --json --stack '*)
    if [ -e "$WORLD/sealed" ]; then
        cat "$WORLD/sealed" >&2
        fail 1
    fi
    cat "$WORLD/outputs"
    ;;
'stack history --json --page-size 1 --stack '*) cat "$WORLD/history" ;;
*)
    echo "error: unknown command: $*" >&2
    fail 2
    ;;
esac
