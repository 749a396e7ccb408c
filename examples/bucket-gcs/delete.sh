#!/bin/sh
# Deletes one object of the bucket $to if it still has this generation; otherwise its name is added to $work/kept. Called by apply
# with a line of $work/delete.
set -eu
generation=${1%%	*}
path=${1#*	}
# Characters that would make the name a pattern for gcloud, or an earlier state of another object.
name=$(printf '%s' "$path" | sed 's/[[*?#]/[&]/g')
errors=$(gcloud storage rm --if-generation-match="$generation" --no-user-output-enabled "${to:?}/$name" 2>&1) || {
    case $errors in
    *'HTTPError 412'* | *'matched no objects'*) printf '%s\n' "$path" >>"${work:?}/kept" ;;
    *)
        printf '%s\n' "$errors" >&2
        exit 1
        ;;
    esac
}
