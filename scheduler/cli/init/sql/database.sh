# Read by the two commands: how SQL is run, how a transaction begins, and which files there are.
# shellcheck shell=sh disable=SC2034

case $DATABASE in
postgres://* | postgresql://*)
    run() { psql --no-psqlrc --quiet --no-align --tuples-only --set ON_ERROR_STOP=1 "$DATABASE"; }
    begin='BEGIN; SELECT pg_advisory_xact_lock(7780);'
    ;;
*)
    mkdir -p "$(dirname "$DATABASE")"
    run() { sqlite3 -bail "$DATABASE"; }
    begin='BEGIN IMMEDIATE;'
    ;;
esac

sum() { sha256sum "$1" | cut -d' ' -f1; }

# What was applied: a line `name|sum` each.
applied() { echo 'SELECT name, sum FROM pvn_migrations ORDER BY name;' | run; }

prepare() {
    echo 'CREATE TABLE IF NOT EXISTS pvn_migrations (name VARCHAR(255) PRIMARY KEY, sum CHAR(64) NOT NULL);' | run
}

is_there() { echo 'SELECT 1 FROM pvn_migrations LIMIT 1;' | run >/dev/null 2>&1; }

# Names of the files that were not applied, a line each. A file that was changed afterwards is an error: nobody knows
# what the database has of it.
pending() {
    done=$(if is_there; then applied; fi)
    for file in migrations/*.sql; do
        name=$(basename "$file")
        was=$(printf '%s\n' "$done" | awk -F'|' -v name="$name" '$1 == name {print $2}')
        if [ -z "$was" ]; then
            echo "$file"
        elif [ "$was" != "$(sum "$file")" ]; then
            echo "$file was applied and has changed since: undo the change, and write a new file" >&2
            exit 1
        fi
    done
}
