#!/bin/sh
# Killed in the middle, helm leaves its release pending and refuses the next one: what is left so is rolled back first.
set -eu
. ./release.sh

if helm status "$PVN_SERVICE" --namespace "$namespace" 2>/dev/null | grep -q '^STATUS: pending'; then
    helm rollback "$PVN_SERVICE" --namespace "$namespace" --wait || helm uninstall "$PVN_SERVICE" --namespace "$namespace" --wait
fi
with_chart helm upgrade --install --create-namespace --wait --timeout 10m
