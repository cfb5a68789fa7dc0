#!/bin/sh
# Runs pawl's main job on this machine's own files: builds pawl-ingest, installing what is missing,
# and lets it read every file below the directories given.
#
#   sh handlers/run.sh [DIR]... [pawl-ingest's options]
#
# Without a DIR: /usr/include and /usr/share/doc. What was done stays in .build/ingest.db, or in --db
# FILE, so that a second run goes on where the first one stopped, and has nothing to do if it had
# finished.
set -eu
root=$(CDPATH= cd -- "$(dirname -- "$0")/.." && pwd)
. "$root/.setup/setup.sh"

# has_dir ARGUMENT...: is one of them neither an option nor an option's value?
has_dir()
{
    value=no
    for argument; do
        case $value,$argument in
        yes,*) value=no ;;
        *,--executors | *,--db) value=yes ;;
        *,-*) ;;
        *) return 0 ;;
        esac
    done
    return 1
}

setup build
say "build: pawl-ingest (release)"
build release -DPAWL_TESTS=OFF -DPAWL_BENCH=OFF

if ! has_dir "$@"; then
    for dir in /usr/include /usr/share/doc; do
        [ ! -d "$dir" ] || set -- "$@" "$dir"
    done
fi
case " $* " in
*" --db "* | *" --db="*) ;;
*) set -- --db "$root/.build/ingest.db" "$@" ;;
esac
say "run:   pawl-ingest $*"
exec "$root/.build/release/handlers/pawl-ingest" "$@"
