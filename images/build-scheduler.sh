#!/bin/sh
# Builds static programs for the image of the scheduler, checks that they need nothing of an image, puts the certificate
# authorities beside them, and prints the directory.
set -eu
cd "$(dirname "$0")/.."

target="$(uname -m)-unknown-linux-gnu"
RUSTFLAGS='-C target-feature=+crt-static' cargo build --quiet --locked --release --target "$target" -p pvn-scheduler -p pvnctl -p pvn-wrapper
directory="target/$target/release"

for program in pvn-scheduler pvnctl pvn-wrapper; do
    if ldd "$directory/$program" >/dev/null 2>&1; then
        echo "$directory/$program is not static" >&2
        exit 1
    fi
done
# Those of this machine, from the package ca-certificates.
cp -L /etc/ssl/certs/ca-certificates.crt "$directory"
echo "$directory: static"
