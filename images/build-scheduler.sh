#!/bin/sh
# Builds static programs for the image of the scheduler, checks that they need nothing of an image and that they are small,
# puts the certificate authorities beside them, and prints the directory. What debuggers and profilers need of them is in
# its directory `symbols`.
set -eu
cd "$(dirname "$0")/.."

target="$(uname -m)-unknown-linux-gnu"
# Wherever CARGO_TARGET_DIR or a config file of cargo puts it.
built=$(cargo metadata --locked --no-deps --format-version 1 | sed -n 's/.*"target_directory":"\([^"]*\)".*/\1/p')
RUSTFLAGS='-C target-feature=+crt-static' cargo build --quiet --locked --profile dist --target "$target" -p pvn-scheduler -p pvnctl
directory="$built/$target/dist"
images/build-wrapper.sh >/dev/null
cp "$built/$target/wrapper/pvn-wrapper" "$directory"

# What may be shipped, in MiB: the daemon 50, the client 20; the wrapper has its own limit.
for program in pvn-scheduler:50 pvnctl:20; do
    limit_bytes=$((${program#*:} * 1024 * 1024))
    program=${program%:*}
    # A static program that can be loaded anywhere counts as a dynamic one to ldd, which then names no library.
    if ldd "$directory/$program" 2>/dev/null | grep -q '\.so'; then
        echo "$directory/$program is not static" >&2
        exit 1
    fi
    # Names and lines are three quarters of it. A program that was not built anew has given them away already.
    mkdir -p "$directory/symbols"
    if readelf --sections --wide "$directory/$program" | grep -q ' \.symtab '; then
        objcopy --only-keep-debug "$directory/$program" "$directory/symbols/$program.debug"
        strip "$directory/$program"
        (cd "$directory" && objcopy --add-gnu-debuglink="symbols/$program.debug" "$program")
    fi
    size_bytes=$(stat -c %s "$directory/$program")
    if [ "$size_bytes" -gt "$limit_bytes" ]; then
        echo "$directory/$program has $size_bytes bytes, more than $limit_bytes" >&2
        exit 1
    fi
done
# Those of this machine, from the package ca-certificates.
cp -L /etc/ssl/certs/ca-certificates.crt "$directory"
echo "$directory: static"
