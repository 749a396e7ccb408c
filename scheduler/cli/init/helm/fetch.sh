#!/bin/sh
# Is there work to do? Exit 0: the cluster is as the chart says. 2: it is not, and how. Anything else: nobody could tell.
trap '[ $? != 2 ] || [ -n "${work:-}" ] || exit 1' EXIT
set -eu
. ./release.sh

wanted=$PVN_INSTANCE_DIR/wanted.yaml
diff=$PVN_INSTANCE_DIR/diff.txt
with_chart helm template >"$wanted"
code=0
if kubectl get namespace "$namespace" >/dev/null 2>"$diff"; then
    # What is in the cluster, and not what helm thinks: 1 is a difference, more an error.
    kubectl diff --namespace "$namespace" --filename "$wanted" >"$diff" || code=$?
elif grep -q NotFound "$diff"; then
    code=1
    { echo "the namespace $namespace is to be made, with:"; cat "$wanted"; } >"$diff"
else
    cat "$diff" >&2
    exit 1
fi
# What a chart has no more is in no diff of what it has.
if [ "$code" = 0 ] && ! helm status "$PVN_SERVICE" --namespace "$namespace" >/dev/null 2>&1; then
    code=1
    echo "there is no release $PVN_SERVICE in $namespace" >"$diff"
fi
case $code in
0) exit 0 ;;
1)
    cat "$diff"
    work=yes
    exit 2
    ;;
*) exit 1 ;;
esac
