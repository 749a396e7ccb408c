#!/bin/sh
# Is there work to do? Exit 0: the unit is as it should be and runs. 2: it is not. Anything else: nobody could tell.
trap '[ $? != 2 ] || [ -n "${work:-}" ] || exit 1' EXIT
set -eu
. ./unit.sh

# Says whether anybody answers for units here at all.
systemctl --user show-environment >/dev/null
if [ ! -e "$file" ]; then
    echo "$unit is not there"
    work=yes
elif ! wanted | diff "$file" - >"$PVN_INSTANCE_DIR/unit.diff"; then
    echo "$unit is another one:"
    cat "$PVN_INSTANCE_DIR/unit.diff"
    work=yes
elif ! systemctl --user --quiet is-enabled "$unit"; then
    echo "$unit is not enabled"
    work=yes
elif ! systemctl --user --quiet is-active "$unit"; then
    echo "$unit does not run: $(systemctl --user is-active "$unit" || true)"
    work=yes
fi
[ -z "${work:-}" ] || exit 2
