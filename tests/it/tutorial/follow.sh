# Read by the script of the tutorial's test: a reader at terminals of 80 columns. `steps` holds the
# page: step N is the commands N.sh, and what the page shows of them is N.shown.
# shellcheck shell=sh disable=SC2034,SC2154

# Text without what differs from run to run: colours, ids, ages, instants, the reader's home, and
# how wide a column is because of them. Ids of jobs and releases that are not short stay.
plain() {
    sed -E -e 's/\x1b\[[0-9;]*[A-Za-z]//g' -e 's/\r//g' \
        -e 's/\b(job|rel)-[0-9a-f]{8}\b/\1-ID/g' -e 's/\bapr-[0-9a-f]+(…)?/apr-ID/g' \
        -e 's/(sha256:|code=)[0-9a-f]+(…)?/\1ID/g' \
        -e 's/^[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9] /TIME /' \
        -e 's/[0-9-]{10}T[0-9:.]+Z/INSTANT/g' \
        -e 's/\b([0-9]+(ms|[dhms]))+\b/AGE/g' \
        -e 's# /[^ ]*/limits/\.pvn/# HOME/limits/.pvn/#g' \
        -e 's/ +/ /g' -e 's/ $//'
}

# Whether step N said what the page shows: line by line, where `…` stands for any lines.
as_shown() {
    plain <"$steps/$1.said" >"$steps/said"
    plain <"$steps/$1.shown" >"$steps/shown"
    awk 'NR == FNR { shown[++n] = $0; next }
        shown[at + 1] == "…" { at++; any = 1 }
        shown[at + 1] == $0 { at++; any = 0; next }
        !any { differs = 1; exit }
        END { if (shown[at + 1] == "…") at++; exit differs || at < n }' \
        "$steps/shown" "$steps/said"
}

# The same of the daemon, where channels go side by side: all lines are there, in any order. A
# channel that is looked at late never waits for the other one.
daemon_as_shown() {
    plain <"$steps/$1.said" >"$steps/said"
    plain <"$steps/$1.shown" | grep -v WAITING_PRECONDITIONS >"$steps/shown"
    ! grep -qvxFf "$steps/said" "$steps/shown"
}

# Waits until that is so, for two minutes at most.
until_as_shown() {
    tries=0
    until eval "$1"; do
        tries=$((tries + 1))
        if [ "$tries" = 600 ]; then
            echo "the page does not show what is seen (< page, > seen):"
            diff "$steps/shown" "$steps/said" || exit 1
        fi
        sleep 0.2
    done
}

# Runs the commands of step N at a terminal.
at_terminal() {
    script --quiet --return --flush \
        --command "stty cols 80 rows 40; exec sh -e $steps/$1.sh" /dev/null >"$steps/$1.said"
}

# The daemon, which goes on in its own terminal.
daemon() {
    : >"$steps/$1.said"
    at_terminal "$1" </dev/null &
    running=$!
    until_as_shown "daemon_as_shown $1"
}

# What is looked at until it is as shown: a reader looks again, too, after a moment.
look() {
    until_as_shown "at_terminal $1 </dev/null && as_shown $1"
}

# What is done once.
once() {
    at_terminal "$1" </dev/null
    until_as_shown "as_shown $1"
}

# What asks, and is answered with yes.
asked() {
    : >"$steps/$1.said"
    {
        tries=0
        until grep -q 'Approve this' "$steps/$1.said" || [ "$tries" = 600 ]; do
            tries=$((tries + 1))
            sleep 0.1
        done
        echo y
    } | at_terminal "$1"
    [ ! -e "$steps/$1.shown" ] || until_as_shown "as_shown $1"
}
