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

fail() { echo "not ok: $*" >&2; exit 1; }

# block LANGUAGE [N]: the Nth fenced block of that language, or the first.
block()
{
    awk -v start='```'"$1" -v wanted="${2:-1}" '
        $0 == start { at++; inside = 1; next }
        $0 == "```" { inside = 0 }
        inside && at == wanted' "$readme"
}

# compile N PROGRAM [COMPILER_FLAG]...: the README's Nth program, as strict C11.
compile()
{
    number=$1 program=$2
    shift 2
    block c "$number" >"$dir/$program.c"
    [ "$(wc -l <"$dir/$program.c")" -ge 20 ] || fail "the README has no program $number"
    "${CC:-cc}" -std=c11 -pedantic-errors -Wall -Wextra -Werror "$@" -I"$include" -o "$dir/$program" \
        "$dir/$program.c" "$library/libpawl.a" $(pkg-config --libs sqlite3 libuv) -lpthread
}

compile 1 greet "$@"
compile 2 order "$@"
compile 3 fragile "$@"
cd "$dir"
[ "$(./greet)" = "hello, world" ] || fail "the program does not greet"
[ "$(sqlite3 jobs.db 'SELECT kind, status FROM pawl_jobs')" = "greet|succeeded" ] ||
    fail "the program's job is not stored as succeeded"
rm -f jobs.db jobs.db-*
echo "ok: the program"

[ "$(./order)" = "confirm lamp" ] || fail "the shop does not confirm what was ordered, and nothing else"
[ "$(sqlite3 shop.db 'SELECT count(*), (SELECT count(*) FROM pawl_jobs) FROM orders')" = "1|1" ] ||
    fail "the order and its job are not both there"
echo "ok: the job in its own transaction"

(./fragile) 2>/dev/null && fail "the first run of the fragile program ends well"
[ "$(./fragile)" = "attempt 2" ] || fail "the second run does not take the job up"
[ "$(sqlite3 fragile.db 'SELECT status, attempts, last_error FROM pawl_jobs')" = \
    "succeeded|2|its process died of SIGABRT in this job's handler" ] || fail "the crash was not charged"
echo "ok: the crash"

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
