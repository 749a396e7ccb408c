# Read by the three commands: which files there are, and what each should hold.
# shellcheck shell=sh

# shellcheck disable=SC2034 # used by the commands that read this file
files='index.html robots.txt greeting.txt'

wanted() {
    case $1 in
    greeting.txt) printf '%s\n' "$GREETING" ;;
    *) cat "wanted/$1" ;;
    esac
}
