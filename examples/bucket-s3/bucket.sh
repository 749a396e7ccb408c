# Read by the commands: compares the files here with the objects in the bucket and says what it would take to make them equal.
# shellcheck shell=sh
#
# `aws s3 sync` compares size and time alone, so it sees neither another text of the same length nor what somebody else uploaded
# later. Here both sides have a digest: a file its SHA-256, an object its ETag, which another content never keeps. Which ETag
# stands for which file is in a record of the last apply, an object beside the site. (An ETag is the MD5 of small objects only,
# and not where they are encrypted with a key of KMS, so it is compared with itself and with nothing else.)

export AWS_PAGER='' AWS_CLI_AUTO_PROMPT=off AWS_RETRY_MODE="${AWS_RETRY_MODE:-standard}"
export LC_ALL=C

# Most lines of an explanation.
lines_limit=200

prefix=$PVN_RELEASE_CHANNEL
record=.pvn/$prefix
# The channel's own directory on this machine, so that what a killed command leaves goes with the channel.
own=${PVN_INSTANCE_DIR:-${TMPDIR:-/tmp}}
work=$(mktemp -d "$own/s3.XXXXXX")

# One line a file, sorted: SHA-256, tab, path.
here() {
    [ -d "$SITE" ] || {
        echo "there is no directory $SITE" >&2
        return 1
    }
    (cd "$SITE" && find -L . -type f -exec sha256sum {} +) >"$work/sums"
    # sha256sum writes such names in a way of its own, which begins with a backslash.
    if grep -e '^[\]' -e '[[:cntrl:]]' "$work/sums" >&2; then
        echo 'rename these: names with a line break, a tab or a backslash are not supported' >&2
        return 1
    fi
    # A build that left nothing is a build that failed; nobody wants the whole site deleted for it.
    [ -s "$work/sums" ] || {
        echo "$SITE is empty" >&2
        return 1
    }
    awk '{ print substr($0, 1, 64) "\t" substr($0, 69) }' "$work/sums" | sort -k 2 >"$work/here"
}

# One line an object, as the bucket lists them: ETag, tab, path below the prefix. Folders that the console makes are no content.
# Names come encoded, since a line break in one would make two lines of it; what no file here can be called is written as a
# backslash and three octal digits.
there() {
    aws s3api list-objects-v2 --bucket "$BUCKET" --prefix "$prefix/" --encoding-type url \
        --query 'Contents[].[ETag,Key]' --output text >"$work/listed"
    awk -v skip="$((${#prefix} + 1))" '
        BEGIN { for (n = 1; n < 256; n++) byte[sprintf("%02X", n)] = n }
        function decoded(text,   part, parts, n, i, out) {
            gsub(/[+]/, " ", text)
            parts = split(text, part, "%")
            out = part[1]
            for (i = 2; i <= parts; i++) {
                n = byte[toupper(substr(part[i], 1, 2))]
                out = out (n < 32 || n == 92 || n == 127 ? sprintf("\\%03o", n) : sprintf("%c", n)) substr(part[i], 3)
            }
            return out
        }
        at = index($0, "\t") {
            path = substr(decoded(substr($0, at + 1)), skip + 1)
            if (path !~ /\/$/ && path != "") print substr($0, 1, at) path
        }' "$work/listed"
}

# What the last apply left: SHA-256, tab, ETag, tab, path. Nothing where there was none.
recorded() {
    # Of all names that begin like it, it comes first.
    found=$(aws s3api list-objects-v2 --bucket "$BUCKET" --prefix "$record" --no-paginate --max-keys 1 --query 'Contents[0].Key' --output text)
    [ "$found" != "$record" ] || aws s3 cp --only-show-errors "s3://$BUCKET/$record" -
}

# Leaves $work/upload and $work/delete, paths; $work/goes, the ETags that objects of these have now; $work/reasons, empty if there is no work; and $work/explanation for people.
compare() {
    here
    there >"$work/there"
    recorded >"$work/recorded"
    : >"$work/upload"
    : >"$work/delete"
    : >"$work/goes"
    awk -v work="$work" '
        function first(line) { return substr(line, 1, index(line, "\t") - 1) }
        function rest(line) { return substr(line, index(line, "\t") + 1) }
        # Of what is overwritten or deleted, the state that is.
        function goes(path) { print etag[path] "\t" path >(work "/goes") }
        FILENAME == work "/there" { etag[rest($0)] = first($0); next }
        FILENAME == work "/recorded" {
            path = rest(rest($0)); sum[path] = first($0); known[path] = first(rest($0)); next
        }
        {
            path = rest($0); ours[path] = 1; why = ""
            if (!(path in etag)) why = "is not in the bucket"
            else if (!(path in sum)) why = "is not the one that was uploaded from here"
            else if (sum[path] != first($0)) why = "is another one here"
            else if (known[path] != etag[path]) why = "was changed in the bucket"
            if (why != "") {
                print path >(work "/upload"); print "upload " path ": " why
                if (path in etag) goes(path)
            }
        }
        END {
            for (path in etag) if (!(path in ours)) {
                print path >(work "/delete"); goes(path); print "delete " path ": it is not one of the files"
            }
        }' "$work/there" "$work/recorded" "$work/here" >"$work/reasons"
    sort -k 2 "$work/reasons" >"$work/sorted"
    uploads=$(wc -l <"$work/upload") deletes=$(wc -l <"$work/delete")
    {
        echo "$((uploads)) to upload, $((deletes)) to delete in s3://$BUCKET/$prefix"
        # An approval of this text is one of exactly these contents, in the place of exactly those objects.
        echo "content $(sort "$work/goes" | cat "$work/here" - | sha256sum | cut -d ' ' -f 1)"
        head -n "$lines_limit" "$work/sorted"
        [ "$((uploads + deletes))" -le "$lines_limit" ] ||
            echo "and $((uploads + deletes - lines_limit)) more, in all $(sha256sum <"$work/sorted" | cut -d ' ' -f 1)"
    } >"$work/explanation"
}
