#!/bin/sh
# What is there? Prints a FetchOutput: one object for each kind of process.
set -eu
. ./fleet.sh

separator=''
printf '{"objects": ['
for kind in $kinds; do
    total=0
    current=0
    others=''
    for member in $(members "$kind"); do
        alive "$member" || continue
        total=$((total + 1))
        version=$(version_of "$member")
        if [ "$version" = "$PVN_SERVICE_VERSION" ]; then
            current=$((current + 1))
        else
            others=$version
        fi
    done

    status=PENDING
    drifted=true
    if [ "$current" -eq "$REPLICAS" ] && [ "$total" -eq "$REPLICAS" ]; then
        status=SUCCEEDED
        drifted=false
    fi

    printf '%s{"name": "%s", "objectType": "Process", "status": "%s", "message": "%s of %s run", ' \
        "$separator" "$kind" "$status" "$current" "$REPLICAS"
    printf '"versions": ['
    inner=''
    if [ "$current" -gt 0 ]; then
        printf '{"version": "%s", "active": true, "drifted": %s, "replicas": %s, "availableReplicas": %s, "targetReplicas": %s}' \
            "$PVN_SERVICE_VERSION" "$drifted" "$current" "$current" "$REPLICAS"
        inner=', '
    fi
    if [ -n "$others" ]; then
        printf '%s{"version": "%s", "active": true, "replicas": %s, "availableReplicas": %s, "targetReplicas": 0}' \
            "$inner" "$others" "$((total - current))" "$((total - current))"
    fi
    printf '], "externalLinks": [{"type": "LOG", "name": "process files", "url": "file://%s/%s"}]' "$PWD" "$run"
    if [ -e "$run/$kind.log" ]; then
        printf ', "debugEvents": ['
        tail -n 3 "$run/$kind.log" | sed 's/^\([^ ]*\) \(.*\)$/{"timestamp": "\1", "message": "\2"}/' | paste -sd, -
        printf ']'
    fi
    printf '}'
    separator=', '
done
printf ']}\n'
