#!/bin/sh
# Makes the bucket what the directory is. What was shown is what is done: if it would be anything else by now, exit 75 makes pvn
# look again. What changes from then on is left alone, and is for the next look.
trap 'rm -rf "${work:-}"' EXIT
set -eu
. ./bucket.sh

changed() {
    echo "$1 has changed since it was compared: nothing but what was shown is done, and pvn looks again" >&2
    code=75
}

compare
if [ -e "$own/shown.txt" ] && ! cmp -s "$own/shown.txt" "$work/explanation"; then
    echo 'the directory or the bucket has changed since they were compared' >&2
    exit 75
fi

# Only what differs, by one call of many uploads at a time, and from a copy: what somebody writes to the directory meanwhile was
# shown to nobody.
mkdir "$work/changed"
while IFS= read -r path; do
    copy=$work/changed/$path
    mkdir -p "${copy%/*}"
    cp -L "$SITE/$path" "$copy" || {
        changed "$SITE/$path"
        exit "$code"
    }
done <"$work/upload"
(cd "$work/changed" && find . -type f -exec sha256sum {} + | sed 's|^\(.\{64\}\)  \./|\1	|' | sort -k 2) >"$work/copied"
awk -v copied="$work/copied" '
    { path = substr($0, index($0, "\t") + 1) }
    FILENAME == copied { sum[path] = $0; next }
    path in sum && sum[path] != $0 { print path }' "$work/copied" "$work/here" >"$work/torn"
[ ! -s "$work/torn" ] || {
    changed "$SITE/$(head -n 1 "$work/torn")"
    exit "$code"
}
to=s3://$BUCKET/$prefix/
code=0
[ ! -s "$work/upload" ] || (cd "$work/changed" && aws s3 cp --recursive --no-progress . "$to")

# What the bucket says of an upload is believed once the object was seen to hold it: somebody else may have put another one there
# since. An ETag is the MD5 of the content; or else (encrypted with a key of KMS, uploaded in parts) the content is read again.
there >"$work/there"
(cd "$work/changed" && find . -type f -exec md5sum {} +) >"$work/md5"
: >"$work/proven"
awk -v work="$work" '
    FILENAME == work "/there" { etag[substr($0, index($0, "\t") + 1)] = substr($0, 1, index($0, "\t") - 1); next }
    {
        path = substr($0, 37)
        to = etag[path] == "\"" substr($0, 1, 32) "\"" ? "/proven" : "/unproven"
        print etag[path] "\t" path >(work to)
    }' "$work/there" "$work/md5"
[ ! -e "$work/unproven" ] || while IFS='	' read -r etag path; do
    # Without an ETag there is no such object any more.
    if [ -n "$path" ]; then
        if aws s3api get-object --bucket "$BUCKET" --key "$prefix/$path" --if-match "$etag" "$work/got" >/dev/null 2>"$work/errors"; then
            cmp -s "$work/got" "$work/changed/$path" && printf '%s\t%s\n' "$etag" "$path" >>"$work/proven" && continue
        elif ! grep -q -e '(PreconditionFailed)' -e '(NoSuchKey)' "$work/errors"; then
            cat "$work/errors" >&2
            exit 1
        fi
    fi
    changed "$to${path:-$etag}"
done <"$work/unproven"

# Last, since pages may still refer to them; each object only as it was shown, even if it changes at this very moment.
awk -v work="$work" -v prefix="$prefix/" -v most=1000 '
    # The name in a string of JSON: \ooo is what bucket.sh writes for a byte that no file here has in its name.
    function quoted(text,   part, parts, i, n, out) {
        gsub(/"/, "\\042", text)
        parts = split(text, part, "[\\\\]")
        out = part[1]
        for (i = 2; i <= parts; i++) {
            n = 64 * substr(part[i], 1, 1) + 8 * substr(part[i], 2, 1) + substr(part[i], 3, 1)
            out = out sprintf("\\u%04x", n) substr(part[i], 4)
        }
        return "\"" out "\""
    }
    { path = substr($0, index($0, "\t") + 1) }
    FILENAME == work "/there" { now[$0] = 1; is[path] = 1; next }
    FILENAME == work "/delete" { shown[$0] = 1; next }
    !(path in shown) || !(path in is) { next }
    !($0 in now) { print path >(work "/kept"); next }
    {
        # So many go by one call.
        batch = work "/batch." int(n / most)
        printf "%s{\"Key\": %s, \"ETag\": %s}", (n++ % most ? ",\n" : "{\"Quiet\": true, \"Objects\": ["),
            quoted(prefix path), quoted(substr($0, 1, index($0, "\t") - 1)) >batch
        if (n % most == 0) print "]}" >batch
    }
    END { if (n % most) print "]}" >batch }' "$work/there" "$work/delete" "$work/goes"
grep '^delete ' "$work/sorted" || :
for batch in "$work"/batch.*; do
    [ -e "$batch" ] || break
    aws s3api delete-objects --bucket "$BUCKET" --delete "file://$batch" --query 'Errors[].[Code,Message,Key]' --output text >"$work/errors"
    # Objects that are to be kept are answers too, and no failure of the call.
    sed -n 's/^PreconditionFailed	.*	//p' "$work/errors" >>"$work/kept"
    if grep -v -e '^PreconditionFailed	' -e '^None$' "$work/errors" >&2; then
        echo "not all objects could be deleted in $to" >&2
        code=1
    fi
done
[ ! -s "$work/kept" ] || changed "$to$(head -n 1 "$work/kept")"

# Files that were not uploaded keep what the record says of them. Were it stored first, an apply that ends half-way would look
# like one that is done.
awk -v work="$work" '
    function first(line) { return substr(line, 1, index(line, "\t") - 1) }
    function rest(line) { return substr(line, index(line, "\t") + 1) }
    FILENAME == work "/recorded" { etag[rest(rest($0))] = first(rest($0)); next }
    FILENAME == work "/upload" { delete etag[$0]; next }
    FILENAME == work "/proven" { etag[rest($0)] = first($0); next }
    rest($0) in etag { print first($0) "\t" etag[rest($0)] "\t" rest($0) }
' "$work/recorded" "$work/upload" "$work/proven" "$work/here" >"$work/record"
aws s3 cp --only-show-errors --content-type text/plain "$work/record" "s3://$BUCKET/$record"
[ "$code" != 0 ] || echo "$to has the $(($(wc -l <"$work/here"))) files of $SITE"
exit "$code"
