#!/bin/sh
# Goal: what the README shows works as printed: the program builds and runs, the commands answer as
# shown, the SQL is understood.
#
# usage: readme_test.sh README PAWL_COMMAND INCLUDE_DIR LIBRARY_DIR [COMPILER_FLAG]...
set -eu
readme=$1 pawl=$2 include=$3 library=$4
shift 4
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# block LANGUAGE: the first fenced block of that language.
block()
{
    sed -n '/^```'"$1"'$/,/^```$/p' "$readme" | sed -e 1d -e '/^```$/,$d'
}

fail() { echo "not ok: $*" >&2; exit 1; }

# The program, as strict C11.
block c >"$dir/greet.c"
[ "$(wc -l <"$dir/greet.c")" -ge 20 ] || fail "the README has no program"
"${CC:-cc}" -std=c11 -pedantic-errors -Wall -Wextra -Werror "$@" -I"$include" -o "$dir/greet" \
    "$dir/greet.c" "$library/libpawl.a" $(pkg-config --libs sqlite3 libuv) -lpthread
cd "$dir"
[ "$(./greet)" = "hello, world" ] || fail "the program does not greet"
[ "$(sqlite3 jobs.db 'SELECT kind, status FROM pawl_jobs')" = "greet|succeeded" ] ||
    fail "the program's job is not stored as succeeded"
rm -f jobs.db jobs.db-*
echo "ok: the program"

# The commands: each line after a prompt is run, and the lines after it are what it prints; a command
# without such lines may print anything.
pawl() { "$pawl" "$@"; }
block console >session
printf '$ end\n' >>session
command="" expected=""
while IFS= read -r line; do
    case $line in
    '$ '*)
        if [ -n "$command" ]; then
            printed=$(eval "$command") || fail "$command: exit status $?"
            [ -z "$expected" ] || [ "$printed" = "$expected" ] ||
                fail "$command: printed \"$printed\" instead of \"$expected\""
        fi
        command=${line#'$ '} expected=""
        ;;
    *) expected=$line ;;
    esac
done <session
[ "$(sqlite3 demo.db 'SELECT status FROM pawl_jobs WHERE id = 1')" = cancelled ] ||
    fail "the commands did not leave a cancelled job"
echo "ok: the commands"

block sql >look.sql
[ "$(sqlite3 demo.db <look.sql | tail -n 1)" = "cancelled|1" ] || fail "the SQL does not answer"
echo "ok: the SQL"
