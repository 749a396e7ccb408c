#!/bin/sh
# Starts what is missing of the desired version, stops everything else.
set -eu
. ./fleet.sh

note() {
    printf '%s %s\n' "$(date -u +%Y-%m-%dT%H:%M:%SZ)" "$2" >>"$run/$1.log"
    echo "$1: $2"
}

mkdir -p "$run"
for kind in $kinds; do
    for member in $(members "$kind"); do
        if ! alive "$member"; then
            rm -f "$member"
        elif [ "$(version_of "$member")" != "$PVN_SERVICE_VERSION" ] || [ "${member##*.}" -gt "$REPLICAS" ]; then
            read -r pid version <"$member"
            kill "$pid"
            rm -f "$member"
            note "$kind" "stopped $version"
        fi
    done
    number=1
    while [ "$number" -le "$REPLICAS" ]; do
        if [ ! -e "$run/$kind.$number" ]; then
            ./worker.sh </dev/null >/dev/null 2>&1 &
            printf '%s %s\n' "$!" "$PVN_SERVICE_VERSION" >"$run/$kind.$number"
            note "$kind" "started $PVN_SERVICE_VERSION number $number"
        fi
        number=$((number + 1))
    done
done
