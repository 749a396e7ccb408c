# Read by the commands: which unit, and what it should be. Every channel has one of its own, so none gets in another's way.
# shellcheck shell=sh

command -v systemctl >/dev/null || {
    echo 'systemctl is not on PATH: this needs a machine with systemd' >&2
    exit 127
}
export XDG_RUNTIME_DIR="${XDG_RUNTIME_DIR:-/run/user/$(id -u)}"

unit=$PVN_SERVICE-$PVN_RELEASE_CHANNEL.service
# shellcheck disable=SC2034 # used by the commands that read this file
file=${XDG_CONFIG_HOME:-$HOME/.config}/systemd/user/$unit

wanted() {
    cat <<UNIT
[Unit]
Description=$PVN_SERVICE in $PVN_RELEASE_CHANNEL

[Service]
ExecStart=/bin/sh -c 'while :; do echo "$MESSAGE"; sleep 60; done'
Restart=always

[Install]
WantedBy=default.target
UNIT
}
