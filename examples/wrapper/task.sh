#!/bin/sh
# Something to run: writes to both streams and leaves a file.
set -eu
echo 'planning' >&2
echo '1 to add, 0 to change' | tee "$1"
