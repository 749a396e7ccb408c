# Read by the commands: what there should be, and what there is. run/CHANNEL/KIND.N holds the process id and the version of
# one process; each channel has a fleet of its own.
# shellcheck shell=sh

# shellcheck disable=SC2034 # used by the commands that read this file
kinds='web queue'
run=run/$PVN_RELEASE_CHANNEL

# Whether the process of this file still runs, and is ours and not a newer one with the same number.
alive() {
    read -r pid _ <"$1" || return 1
    case $(ps -o stat= -o args= -p "$pid" 2>/dev/null) in
    Z*) return 1 ;; # ended, and nobody has taken note
    *worker.sh*) return 0 ;;
    *) return 1 ;;
    esac
}

version_of() {
    read -r _ version <"$1"
    printf '%s' "$version"
}

# The files of one kind, if there are any.
members() {
    for member in "$run/$1".[0-9]*; do
        [ -e "$member" ] && printf '%s\n' "$member"
    done
    return 0
}
