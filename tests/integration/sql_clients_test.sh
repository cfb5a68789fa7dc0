#!/bin/sh
# Goal: the ordinary SQLite clients enqueue, look, change, cancel and requeue while a pool runs, through nothing
# but SQL: the sqlite3 shell, Python's sqlite3 module, Node's sqlite3 package. What the README prints of it is
# what is run here.
#
# usage: sql_clients_test.sh PAWL_COMMAND MAILER README
set -u
pawl=$1 mailer=$2 readme=$3
clients=$(CDPATH= cd -- "$(dirname -- "$0")/clients" && pwd)
python=/usr/bin/python3 # Debian's, which uses the system's SQLite
[ -x "$python" ] || python=python3
dir=$(mktemp -d)
mailer_pid=""

stop_mailer()
{
    [ -z "$mailer_pid" ] && return
    exec 9>&- # its standard input ends, and so does it
    wait "$mailer_pid"
    mailer_status=$?
    mailer_pid=""
}

clean_up()
{
    [ -n "$mailer_pid" ] && kill "$mailer_pid" 2>/dev/null
    rm -rf "$dir"
}
trap clean_up EXIT
trap 'exit 1' HUP INT TERM
cd "$dir" || exit 1

fail()
{
    echo "not ok - $*" >&2
    [ -f mail.log ] && sed 's/^/# /' mail.log >&2
    exit 1
}
ok() { echo "ok - $*"; }

# A stream that a sanitizer's program or a client ends by itself is bounded all the same.
limited() { timeout 60 "$@"; }
ask() { limited sqlite3 -cmd '.timeout 5000' shop.db "$1"; }

# mailed PATTERN: a line of the mailer's, within 20 s.
mailed()
{
    tries=0
    until grep -q "^mail $1\$" mail.log; do
        tries=$((tries + 1))
        [ "$tries" -lt 2000 ] || fail "the pool did not run: mail $1"
        sleep 0.01
    done
}

# as_printed LANGUAGE FILE: one of the README's blocks of the language is the file.
as_printed()
{
    awk -v start="\`\`\`$1" -v name="block-$1" '
        !inside && $0 == start { inside = 1; n++; next }
        inside && $0 == "```" { inside = 0; next }
        inside { print > (name "-" n) }' "$readme"
    for block in "block-$1"-*; do # none: the pattern itself
        cmp -s "$block" "$clients/$2" && { ok "the README prints $2"; return; }
    done
    fail "the README's $1 is not clients/$2"
}

limited "$pawl" init shop.db >/dev/null || fail "pawl init"
mkfifo stdin || exit 1
"$mailer" shop.db <stdin >mail.log 2>&1 9>&- &
mailer_pid=$!
exec 9>stdin
tries=0
until grep -q '^ready$' mail.log; do
    tries=$((tries + 1))
    [ "$tries" -lt 2000 ] || fail "the pool does not start"
    sleep 0.01
done

# The shell.
limited sqlite3 -cmd '.timeout 5000' shop.db <"$clients/shell.sql" >out 2>err || fail "shell.sql: $(cat err)"
[ ! -s err ] || fail "shell.sql: $(cat err)"
grep -q '|bob@example.com|20' out || fail "shell.sql does not show the job: $(cat out)"
mailed '[0-9]* ann@example.com'
mailed '[0-9]* bob@example.com'
ok "the shell enqueues, looks, changes, cancels and requeues"
message=$(ask "PRAGMA wal_autocheckpoint=0; INSERT INTO pawl_jobs (payload) VALUES (1)" 2>&1) &&
    fail "an INSERT without a kind was taken"
case $message in
*"pawl: kind is missing; write INSERT INTO pawl_jobs"*) ok "the shell shows the sentence that refuses" ;;
*) fail "the refusal is: $message" ;;
esac

# Python.
for run in 1 2; do
    printed=$(limited "$python" "$clients/enqueue.py" shop.db) || fail "enqueue.py"
    mailed "${printed#enqueued } cid@example.com"
done
[ "$(ask 'SELECT group_concat(job > 0) FROM orders')" = 1,1 ] || fail "the orders do not have their jobs"
ok "Python enqueues in its own transaction"
[ "$(limited "$python" "$clients/tour.py" shop.db 'key of Python')" = "tour done" ] || fail "tour.py"
mailed '[0-9]* eva@example.com'
ok "Python does all of it"

# Node. A NODE_PATH that is set is used: Debian's packages are out of the reach of another Node.
if ! command -v node >/dev/null; then
    echo "skipped - Node: there is no node (Debian: node-sqlite3)"
elif ! node -e "require('sqlite3')" 2>/dev/null; then
    echo "skipped - Node: node cannot load sqlite3 (Debian: node-sqlite3)"
else
    printed=$(limited node "$clients/enqueue.js" shop.db) || fail "enqueue.js"
    mailed "${printed#enqueued } dora@example.com"
    ok "Node enqueues in its own transaction"
    [ "$(limited node "$clients/tour.js" shop.db 'key of Node')" = "tour done" ] || fail "tour.js"
    mailed '[0-9]* finn@example.com'
    ok "Node does all of it"
fi

if grep -q '^## Look inside with SQL$' "$readme"; then
    as_printed sql shell.sql
    as_printed python enqueue.py
    as_printed js enqueue.js
fi

stop_mailer
[ "$mailer_status" = 0 ] || fail "the mailer ended with $mailer_status"
[ "$(sort mail.log | uniq -d)" = "" ] || fail "a job ran twice"
[ "$(ask "SELECT count(*) FROM pawl_jobs WHERE status = 'succeeded'")" = \
    "$(grep '^mail' mail.log | grep -vc ' bounce')" ] || fail "not every job that ran has succeeded"
[ "$(ask "SELECT count(*) FROM pawl_lane l WHERE l.enqueued <> l.pruned +
    (SELECT count(*) FROM pawl_job j WHERE j.lane = l.id)
    OR l.succeeded <> (SELECT count(*) FROM pawl_job j WHERE j.lane = l.id AND j.status = 4)
    OR l.failed <> (SELECT count(*) FROM pawl_job j WHERE j.lane = l.id AND j.status = 5)
    OR l.cancelled + l.ready + l.later + l.running <> 0")" = 0 ] || fail "the counters differ from a recount"
ok "every job ran once, and the counters are right"
