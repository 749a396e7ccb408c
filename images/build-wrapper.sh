#!/bin/sh
# Builds the static wrapper for this machine's architecture, checks that it needs nothing of an image and that it is
# small, and prints its path.
set -eu
cd "$(dirname "$0")/.."

# 6 MiB: it is copied into every job image.
limit_bytes=$((6 * 1024 * 1024))

target="$(uname -m)-unknown-linux-gnu"
# Wherever CARGO_TARGET_DIR or a config file of cargo puts it.
built=$(cargo metadata --locked --no-deps --format-version 1 | sed -n 's/.*"target_directory":"\([^"]*\)".*/\1/p')
program="$built/$target/wrapper/pvn-wrapper"
# At a fixed address: a static program that moves itself does 12,000 relocations at each start, a third of all that a run of
# `true` costs it, and 50 page faults.
# What every run needs lies side by side, for the same reason. Cargo does not look into the linker's script; with its checksum
# another script is another command line.
order=images/wrapper-order.ld
RUSTFLAGS='-C target-feature=+crt-static -C relocation-model=static' cargo rustc --quiet --locked --profile wrapper --target "$target" \
    -p pvn-wrapper --bin pvn-wrapper -- -C link-arg="-Wl,-T,$PWD/$order" -C link-arg="-Wl,-Map,$program.map" \
    --cfg "order_$(cksum <$order | cut -d ' ' -f 1)"

if ldd "$program" >/dev/null 2>&1; then
    echo "$program is not static" >&2
    exit 1
fi
size_bytes=$(stat -c %s "$program")
if [ "$size_bytes" -gt "$limit_bytes" ]; then
    echo "$program has $size_bytes bytes, more than $limit_bytes" >&2
    exit 1
fi
# A function of ours that has another name by now, or became a part of another, is no failure, merely somewhere else.
sed -n 's/^ *\*(\(\.text\.[^ ]*pvn_wrapper[^ ]*\))$/\1/p' "$order" | while read -r function; do
    section=$(echo "$function" | sed 's/\./\\./g; s/\*/.*/g')
    [ ! -e "$program.map" ] || grep -q ":($section)" "$program.map" || echo "$order: nothing is called $function" >&2
done
echo "$program: static, $size_bytes bytes"
