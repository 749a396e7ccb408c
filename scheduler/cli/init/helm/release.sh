# Read by the two commands: which release of which chart, with which values. Every channel has a namespace and a file of
# values of its own, so none gets in another's way.
# shellcheck shell=sh

for tool in helm kubectl; do
    command -v "$tool" >/dev/null || {
        echo "$tool is not on PATH: install it" >&2
        exit 127
    }
done

namespace=$PVN_SERVICE-$PVN_RELEASE_CHANNEL
values=values-$PVN_RELEASE_CHANNEL.yaml
[ -e "$values" ] || values=/dev/null

# Calls helm with what both commands say alike.
with_chart() {
    "$@" "$PVN_SERVICE" ./chart --namespace "$namespace" --values "$values" --set-string "message=$MESSAGE"
}
