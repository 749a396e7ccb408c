#!/bin/sh
# Makes status-push-approve.cast, beside it: what somebody sees who looks at the tutorial's service, pushes a new value and
# approves it, at a terminal of 80 columns, in asciinema's format (v2). Needs the programs on PATH and `script` of util-linux.
#
#     PATH=$PWD/target/release:$PATH docs/recording/record.sh
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
daemon=
trap '[ -z "$daemon" ] || kill "$daemon"; rm -rf "$work"' EXIT

# The tutorial's second and third block of commands make the three commands and the config.
mkdir "$work/limits"
cd "$work/limits"
awk '/^```sh$/ { n++; inside = 1; next } /^```$/ { inside = 0 } inside && (n == 2 || n == 3)' \
    "$here/../tutorial.md" >"$work/setup.sh"
sh -e "$work/setup.sh" >"$work/setup.log"

pvn-scheduler dev . --listen 127.0.0.1:0 >"$work/dev.log" 2>&1 &
daemon=$!
PVN_SERVER=
until [ -n "$PVN_SERVER" ]; do
    sleep 0.1
    PVN_SERVER=$(sed -n 's/^pvn listens on //p' "$work/dev.log")
done
PVN_DATA_DIR=$work/limits/.pvn
export PVN_SERVER PVN_DATA_DIR
cat >"$work/until-asked.sh" <<'END'
until pvnctl get services -o json | grep -q WAITING_MANUAL_APPROVAL; do sleep 0.1; done
END
# The first version is everywhere before the recording begins.
sh "$work/until-asked.sh"
pvnctl approve limits@production --yes >"$work/before.log" 2>&1
pvnctl wait limits >>"$work/before.log" 2>&1

# Who sits at the keyboard: types, reads, and says yes when asked.
cat >"$work/person.sh" <<'END'
at_prompt() {
    printf '\033[1;32m$\033[0m '
    sleep 0.8
    text=$1
    while [ -n "$text" ]; do
        rest=${text#?}
        printf '%s' "${text%"$rest"}"
        text=$rest
        sleep 0.05
    done
    sleep 0.4
    echo
}
run() {
    at_prompt "$1"
    eval "$1"
    sleep "$2"
}
stty cols 80 rows 24
run 'pvnctl status' 2
run 'pvnctl push limits --param rate=250' 1
sh ../until-asked.sh
run 'pvnctl status' 3
run 'pvnctl approve limits@production' 1
pvnctl wait limits >../wait.log 2>&1
run 'pvnctl status' 2
END
{
    until grep -q 'Approve this' "$work/said" 2>/dev/null; do sleep 0.1; done
    sleep 3
    echo y
} | script --quiet --return --flush --log-out "$work/said" --log-timing "$work/timing" \
    --command "sh -e $work/person.sh" >"$work/screen"

# What was said, piece by piece, with when; a character that is cut in two goes with the later piece.
# `script` puts a line of its own before and after.
sed 1d "$work/said" >"$work/bytes"
LC_ALL=C awk -v bytes="$work/bytes" '
    function quoted(text,    at, code, out, c) {
        for (at = 1; at <= length(text); at++) {
            c = substr(text, at, 1)
            code = codes[c]
            if (c == "\"" || c == "\\") out = out "\\" c
            else if (code < 32) out = out sprintf("\\u%04x", code)
            else out = out c
        }
        return "\"" out "\""
    }
    BEGIN {
        for (code = 1; code < 256; code++) codes[sprintf("%c", code)] = code
        RS = "^$"
        getline all <bytes
        RS = "\n"
        print "{\"version\": 2, \"width\": 80, \"height\": 24, \"title\": \"pvn: status, push, approve\"}"
    }
    {
        now += $1
        text = text substr(all, from + 1, $2)
        from += $2
        if (text ~ /[\300-\377][\200-\277]?$/ && text !~ /[\300-\337][\200-\277]$/) next
        printf "[%.3f, \"o\", %s]\n", now, quoted(text)
        text = ""
    }' "$work/timing" >"$here/status-push-approve.cast"
