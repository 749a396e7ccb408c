#!/bin/sh
# Each file in a transaction with the note that it was applied: killed at any moment, it was applied whole or not at all.
set -eu
. ./database.sh

prepare
files=$(pending)
for file in $files; do
    echo "applies $file"
    {
        echo "$begin"
        # Fails where another run applied it meanwhile.
        echo "INSERT INTO pvn_migrations (name, sum) VALUES ('$(basename "$file")', '$(sum "$file")');"
        cat "$file"
        echo
        echo 'COMMIT;'
    } | run
done
