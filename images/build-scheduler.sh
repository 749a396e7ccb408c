#!/bin/sh
# Builds static programs for the image of the scheduler, checks that they need nothing of an image, puts the certificate
# authorities beside them, and prints the directory.
set -eu
cd "$(dirname "$0")/.."

target="$(uname -m)-unknown-linux-gnu"
RUSTFLAGS='-C target-feature=+crt-static' cargo build --quiet --locked --release --target "$target" -p pvn-scheduler -p pvnctl -p pvn-wrapper
directory="target/$target/release"

for program in pvn-scheduler pvnctl pvn-wrapper; do
    # A static program that can be loaded anywhere counts as a dynamic one to ldd, which then names no library.
    if ldd "$directory/$program" 2>/dev/null | grep -q '\.so'; then
        echo "$directory/$program is not static" >&2
        exit 1
    fi
    # Tables of lines, for benchmarks and profiles, are three quarters of it.
    strip "$directory/$program"
done
# Those of this machine, from the package ca-certificates.
cp -L /etc/ssl/certs/ca-certificates.crt "$directory"
echo "$directory: static"
