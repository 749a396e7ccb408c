# Read by the commands: compares the files here with the objects in the bucket and says what it would take to make them equal.
# shellcheck shell=sh
#
# Cloud Storage keeps a CRC32C of every object, however it was uploaded, and `gcloud storage` makes the same of a file; so it is
# contents that are compared, not sizes and times.

export CLOUDSDK_CORE_DISABLE_PROMPTS=1 CLOUDSDK_COMPONENT_MANAGER_DISABLE_UPDATE_CHECK=1 TERM=dumb
export LC_ALL=C PYTHONIOENCODING=utf-8

# Most lines of an explanation.
lines_limit=200

prefix=$PVN_RELEASE_CHANNEL
to=gs://$BUCKET/$prefix
# The channel's own directory on this machine, so that what a killed command leaves goes with the channel.
own=${PVN_INSTANCE_DIR:-${TMPDIR:-/tmp}}
work=$(mktemp -d "$own/gcs.XXXXXX")

# What went wrong stands in gcloud's first line, and pvn shows people the last one: so that one is said again.
storage() {
    code=0
    { errors=$(gcloud storage "$@" 2>&1 >&3) || code=$?; } 3>&1
    [ -z "$errors" ] || printf '%s\n' "$errors" >&2
    [ "$code" = 0 ] || printf '%s\n' "$errors" | grep -m 1 '^ERROR: ' >&2 || :
    return "$code"
}

# One line for each file of this directory, sorted: CRC32C, tab, path. From within, so that no directory's name has a meaning for
# gcloud.
digests() {
    (cd "$1" && storage hash --skip-md5 './**' --format='value(crc32c_hash,url)') >"$work/hashes"
    sed 's|	\./|	|' "$work/hashes" | sort
}

# What is wanted, in $work/here.
here() {
    [ -d "$SITE" ] || {
        echo "there is no directory $SITE" >&2
        return 1
    }
    # A build that left nothing is a build that failed; nobody wants the whole site deleted for it.
    [ -n "$(find "$SITE" -type f | head -n 1)" ] || {
        echo "$SITE is empty" >&2
        return 1
    }
    # For gcloud `page#1` is an earlier state of `page`: it would be uploaded as that. The others would be two lines in the lists
    # here, or are no names for a bucket.
    (
        cd "$SITE" || exit
        find -L . -name '*[[:cntrl:]\\]*'
        find -L . -type f -name '*#*' | grep -e '#[0-9][0-9]*$' || :
    ) >"$work/odd"
    if [ -s "$work/odd" ]; then
        cat "$work/odd" >&2
        echo 'rename these: names with a line break, a tab, a backslash or a number after # at the end are not supported' >&2
        return 1
    fi
    digests "$SITE" >"$work/here"
}

# One line an object: CRC32C, tab, generation, tab, path below the prefix. Folders that the console makes are no content, and
# earlier versions of an object are not what anybody reads.
there() {
    # The empty column is the time since when it is an earlier version.
    storage objects list "$to/**" --format='value(crc32c_hash,generation,noncurrent_time,name)' >"$work/listed"
    awk -v skip="$((${#prefix} + 1))" '
        at = index($0, "\t\t") {
            path = substr($0, at + 2 + skip)
            if (path !~ /\/$/ && path != "") print substr($0, 1, at) path
        }' "$work/listed" >"$work/objects"
    # gcloud would look for an earlier state of another object.
    if grep -e '#[0-9][0-9]*$' "$work/objects" >&2; then
        echo "delete what has a number after # at the end of its name in $to by hand: gcloud cannot" >&2
        return 1
    fi
    cat "$work/objects"
}

# Leaves $work/upload, paths; $work/delete and $work/overwrite, each generation, tab, path; $work/reasons, empty if there is no
# work; and $work/explanation for people.
compare() {
    here
    there >"$work/there"
    : >"$work/upload"
    : >"$work/overwrite"
    : >"$work/delete"
    awk -v work="$work" '
        function first(line) { return substr(line, 1, index(line, "\t") - 1) }
        function rest(line) { return substr(line, index(line, "\t") + 1) }
        FILENAME == work "/there" { path = rest(rest($0)); sum[path] = first($0); generation[path] = first(rest($0)); next }
        { path = rest($0); ours[path] = 1 }
        !(path in sum) { print path >(work "/upload"); print "upload " path ": is not in the bucket"; next }
        sum[path] != first($0) {
            print path >(work "/upload")
            print generation[path] "\t" path >(work "/overwrite")
            print "upload " path ": is not the same in the bucket"
        }
        END {
            for (path in sum) if (!(path in ours)) {
                print generation[path] "\t" path >(work "/delete")
                print "delete " path ": it is not one of the files"
            }
        }' "$work/there" "$work/here" >"$work/reasons"
    sort -k 2 "$work/reasons" >"$work/sorted"
    all=$(wc -l <"$work/reasons") deletes=$(wc -l <"$work/delete")
    {
        echo "$((all - deletes)) to upload, $((deletes)) to delete in $to"
        # An approval of this text is one of exactly these contents, in the place of exactly those objects.
        echo "content $(sort "$work/overwrite" "$work/delete" | cat "$work/here" - | sha256sum | cut -d ' ' -f 1)"
        head -n "$lines_limit" "$work/sorted"
        [ "$all" -le "$lines_limit" ] ||
            echo "and $((all - lines_limit)) more, in all $(sha256sum <"$work/sorted" | cut -d ' ' -f 1)"
    } >"$work/explanation"
}
