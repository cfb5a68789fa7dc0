#!/bin/sh
# doctor_test.sh PAWL WORKER - pawl doctor and pawl explain from outside: for each finding a file that has it,
# made by hand. The finding is named, with its remedy and exit 1; a healthy file is fine beside a pool that
# works; and no look changes the file, its log, or what lies beside them.
set -u

pawl=$1
worker=$2
work=$(mktemp -d)
pids=
# shellcheck disable=SC2086
trap 'kill -9 $pids 2>/dev/null; rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
cd "$work" || exit 1
for needed in "$pawl" "$worker" sqlite3 script setpriv; do
    command -v "$needed" >/dev/null || { echo "doctor_test.sh: $needed is missing" >&2; exit 1; }
done
unset COLUMNS NO_COLOR POSIXLY_CORRECT
TERM=xterm
LC_ALL=C
export TERM LC_ALL
umask 077

passed=0
failed=0
escape=$(printf '\033')

ok()
{
    passed=$((passed + 1))
    printf 'ok - %s\n' "$1"
}

not_ok()
{
    failed=$((failed + 1))
    printf 'not ok - %s\n' "$1"
    grep -v '^ok ' out | sed 's/^/#   out: /' | head -n 20
    sed 's/^/#   err: /' err | head -n 20
}

# check WHAT COMMAND...: the command must succeed.
check()
{
    what=$1
    shift
    if "$@"; then ok "$what"; else not_ok "$what"; fi
}

skip() { printf 'ok - %s # skipped: %s\n' "$1" "$2"; }

# SQL on a file, as a careful client.
sql() { sqlite3 -bail "$1" "PRAGMA wal_autocheckpoint=0; PRAGMA ignore_check_constraints=ON; $2" >sql.out 2>&1 || { cat sql.out; exit 1; }; }
ask() { sqlite3 "$1" "$2"; }

# What must be the same before and after: names, and the bytes of the file and of its log.
fingerprint()
{
    for each in "$1" "$1-wal"; do
        if [ -f "$each" ] && [ -r "$each" ]; then sha256sum "$each"; fi
    done
    ls -d "$1"* 2>/dev/null
    ls "$1-pawl" 2>/dev/null
}

# doctor STATUS WHAT FILE [OPTION...]: examines it, with a look at whether it stayed the same, unless a pool
# is just at work on it.
at_work=no
doctor()
{
    expected=$1
    about=$2
    shift 2
    fingerprint "$1" >before
    timeout 60 "$pawl" doctor "$@" >out 2>err </dev/null
    status=$?
    fingerprint "$1" >after
    check "$about: exit $expected" test "$status" -eq "$expected"
    if [ "$at_work" = no ]; then check "$about: nothing is changed" cmp -s before after; fi
}

# finds SEVERITY CHECK PART REMEDY: a line of the last look, and the remedy below it.
finds()
{
    check "  it says: $2: $3" grep -q "^$1 *$2 .*$3" out
    if [ -n "$4" ]; then
        grep -A1 "^$1 *$2 .*$3" out | grep "^  " >remedy
        check "  what to do: $4" grep -qe "$4" remedy
    fi
}
# The command of the last remedy, as it is printed, behind what is said before it; then the file is fine.
run_remedy()
{
    sed 's/^  *//; s/^[^"$]*: \(sqlite3 \|t=\)/\1/' remedy >command
    PATH=$(dirname "$pawl"):$PATH sh -e command >sql.out 2>&1 || { cat command sql.out; not_ok "  the remedy runs"; }
}
apply_remedy()
{
    run_remedy
    doctor 0 "  after the remedy" case.db
}
finds_no_problem() { check "  no warning, no error" sh -c '! grep -qE "^(warning|error) " out'; }

# A file with one job of each common state, and a copy of it for each case.
"$pawl" init template.db >/dev/null || exit 1
"$pawl" enqueue template.db --kind greet a >/dev/null
"$pawl" enqueue template.db --kind greet --delay 1h b >/dev/null
"$pawl" enqueue template.db --kind greet c >/dev/null
"$pawl" cancel template.db 3 >/dev/null
fresh()
{
    rm -rf case.db* ; cp template.db case.db
}

# A worker on a file; its standard input is a pipe that stays open. WORKER_PID is its pid.
start_worker()
{
    rm -f in said
    mkfifo in
    "$worker" work "$work/$1" 60000 2 <in >said 2>err &
    WORKER_PID=$!
    pids="$pids $WORKER_PID"
    exec 9>in
    await "the worker is ready" grep -q ready said
}
await()
{
    waited=$1
    shift
    tries=0
    until "$@"; do
        tries=$((tries + 1))
        [ $tries -lt 400 ] || { not_ok "$waited"; return; }
        sleep 0.05
    done
}
end_worker()
{
    kill -9 "$WORKER_PID" 2>/dev/null
    exec 9>&-
    wait "$WORKER_PID" 2>/dev/null
    true
}

# ------------------------------------------------------------------------------------ healthy

fresh
doctor 0 "a healthy file at rest" case.db
finds_no_problem
for each in sqlite race file mode filesystem disk schema triggers journal pools copies side-files wal writers leases waiting \
    paused sequence counters claims fences attempts rows history foreign-keys integrity; do
    check "  $each reports" grep -q "^[a-z]* *$each " out
done
check "  no colour" sh -c "! grep -q '$escape' out"
check "  no sidecar is left" sh -c 'test "$(ls case.db*)" = case.db'

doctor 0 "a quick look" case.db --quick
check "  one line says what was left out" test "$(grep -c 'not looked at' out)" -eq 1
check "  namely" grep -q "^not looked at: counters, .*, integrity (a quick look was asked for)$" out
"$pawl" doctor case.db --quick --json >out 2>err
check "  JSON has each" test "$(grep -c 'not looked at: a quick' out)" -eq 8

timeout 60 script -qec "'$pawl' doctor case.db" /dev/null </dev/null 2>err >out
check "colour on a terminal" grep -q "$escape" out

timeout 60 "$pawl" doctor case.db --json >out 2>err </dev/null
check "JSON: exit 0" test $? -eq 0
check "JSON: it is valid, with findings" test \
    "$(sqlite3 :memory: "SELECT json_array_length(readfile('out'), '\$.findings') > 20 AND json_extract(readfile('out'), '\$.problems') = 0")" = 1
check "JSON: the fields of a finding" test \
    "$(sqlite3 :memory: "SELECT group_concat(key) FROM json_each(readfile('out'), '\$.findings[0]')")" = severity,check,text,remedy

for arguments in "" "case.db more" "case.db --no-such"; do
    # shellcheck disable=SC2086
    timeout 60 "$pawl" doctor $arguments >out 2>err </dev/null
    check "usage '$arguments': exit 2" test $? -eq 2
done

fresh
leave_log()
{
    sqlite3 case.db >/dev/null <<'END'
PRAGMA wal_autocheckpoint=0;
UPDATE pawl_lane SET last_error = 'x';
.shell cp case.db left.db; cp case.db-wal left.db-wal; cp case.db-shm left.db-shm
END
}
leave_log
doctor 0 "a log that was left behind" left.db
check "  it is still there" test -s left.db-wal
rm left.db-shm
at_work=yes
doctor 0 "a log without its index" left.db
at_work=no
finds note wal "had no index" ""
check "  the log is still there" test -s left.db-wal
: >left.db-wal
doctor 0 "an empty log that was left behind" left.db
rm -f left.db-*

fresh
start_worker case.db
await "the first job has run" sh -c 'grep -q "end quick\|start" said || test -n "$(sqlite3 case.db "SELECT 1 FROM pawl_holder")"'
doctor 0 "a healthy file with a pool at work" case.db
finds_no_problem
finds ok pools "lives" ""
finds ok integrity "ok, table by table" ""
sql case.db "CREATE TABLE app (x); WITH n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 110)
    INSERT INTO app SELECT zeroblob(1000000) FROM n"
await "the log is in the file" sh -c 'test "$(wc -c <case.db)" -gt 110000000'
doctor 0 "a large file with a pool at work" case.db
check "  integrity is left out" grep -q "^not looked at: integrity (.*in use it would hold the log" out
end_worker

# ------------------------------------------------------------------- files that are no stores

doctor 1 "no such file" missing.db
finds error file "does not exist" "pawl init missing.db"
check "  it is not made" test ! -e missing.db
check "  in few lines" test "$(wc -l <out)" -le 8

mkdir a-directory
doctor 1 "a directory" a-directory
finds error file "a directory" "name the database file"

: >empty.db
doctor 1 "a file of no bytes" empty.db
finds error schema "no pawl tables" "pawl init"
check "  it has no bytes still" test ! -s empty.db

head -c 100000 /dev/urandom >garbage.db
doctor 1 "garbage" garbage.db
finds error schema "not a database" "not an SQLite database"
chmod 644 garbage.db
doctor 1 "garbage that everybody may read" garbage.db
check "  what it is comes first" test "$(sed -n 's/^\(warning\|error\) *\([a-z]*\) .*/\2/p' out | head -n 1)" = schema

head -c 10000 template.db >case.db
doctor 1 "a truncated file" case.db
check "  it says that it is damaged" grep -q "^error .*\(malformed\|database\)" out

rm -f app.db*; sqlite3 app.db 'CREATE TABLE app (x)'
doctor 1 "another application's database" app.db
finds error schema "no pawl tables" "pawl init"

rm -f app.db*; sqlite3 app.db 'CREATE TABLE pawl_things (x)'
doctor 1 "foreign objects under pawl's names" app.db
finds error schema "not pawl's" "rename"

fresh; sql case.db "UPDATE pawl_meta SET value = 99 WHERE key = 'schema'"
doctor 1 "a newer schema" case.db
finds error schema "newer pawl" "upgrade"

# spoil WHAT PART REMEDY SQL: nothing of the rows is wrong, but pawl does not work with it; the remedy is run.
spoil()
{
    fresh; sql case.db "$4"
    doctor 1 "$1" case.db
    finds error schema "$2" "$3"
    check "  one finding" test "$(grep -cE '^(warning|error) ' out)" -eq 1
    apply_remedy
}
spoil "an index that is missing" "index pawl_job_key is missing" "CREATE UNIQUE INDEX" "DROP INDEX pawl_job_key"
spoil "an index that is not unique" "index pawl_job_key is not as pawl made it" "CREATE UNIQUE INDEX" \
    "DROP INDEX pawl_job_key; CREATE INDEX pawl_job_key ON pawl_job (kind, idempotency_key)
     WHERE idempotency_key IS NOT NULL"
spoil "another index under pawl's name" "index pawl_job_ready is not as pawl made it" "CREATE INDEX" \
    "DROP INDEX pawl_job_ready; CREATE INDEX pawl_job_ready ON pawl_lane (ready)"
spoil "a trigger that does nothing" "trigger pawl_jobs_insert is not as pawl made it" "make them anew" \
    "DROP TRIGGER pawl_jobs_insert; CREATE TRIGGER pawl_jobs_insert INSTEAD OF INSERT ON pawl_jobs BEGIN SELECT 1; END"
sqlite3 case.db "PRAGMA wal_autocheckpoint=0; INSERT INTO pawl_jobs (kind) VALUES ('greet')" >sql.out 2>&1
check "  SQL enqueues again" test "$(ask case.db "SELECT id FROM pawl_last")" = 4
spoil "a trigger that is missing" "trigger pawl_jobs_delete is missing" "make them anew" "DROP TRIGGER pawl_jobs_delete"
spoil "a view that is missing" "view pawl_jobs is missing, trigger pawl_jobs_insert is missing" "make them anew" \
    "DROP VIEW pawl_jobs"
spoil "a view of somebody's" "view pawl_last is not as pawl made it" "make them anew" \
    "DROP VIEW pawl_last; CREATE VIEW pawl_last AS SELECT 1 AS id"
for key in epoch fence restarts sql_last sql_writer; do
    spoil "pawl_meta without $key" "pawl_meta has lost its rows: $key" "INSERT" "DELETE FROM pawl_meta WHERE key = '$key'"
    check "  pawl works with it" "$pawl" enqueue case.db --kind greet d >/dev/null
done

fresh; sql case.db "DROP INDEX pawl_job_ready; CREATE TABLE pawl_job_ready (x)"
doctor 1 "a table in the way" case.db
finds error schema "a table stands where pawl's index pawl_job_ready belongs" "rename it"
run_remedy
doctor 1 "  and then" case.db
finds error schema "index pawl_job_ready is missing" "CREATE INDEX"
apply_remedy
fresh; sql case.db "ALTER TABLE pawl_job ADD COLUMN mine INTEGER"
doctor 1 "a table that was altered" case.db
finds error schema "table pawl_job is not as pawl made it" "undo that"
fresh; sql case.db "DROP TABLE pawl_attempts"
doctor 1 "a table that is missing" case.db
finds error schema "table pawl_attempts is missing" "restore a backup"
fresh; sql case.db "DROP INDEX pawl_job_later; CREATE  index pawl_job_later
    on pawl_job(available_at) where  status = 8"
doctor 0 "the same in other letters" case.db

fresh; sql case.db "PRAGMA journal_mode = DELETE"
doctor 1 "a file that is not in WAL mode" case.db
finds warning journal "journal mode is delete" "next pool"

# A transaction that has spilled into the file, and its process is gone.
sqlite3 case.db >/dev/null <<'END'
CREATE TABLE app (x);
INSERT INTO app SELECT zeroblob(3000) FROM sqlite_schema a, sqlite_schema b;
PRAGMA cache_size = 1;
BEGIN;
UPDATE app SET x = zeroblob(3001);
.shell cp case.db hot.db; cp case.db-journal hot.db-journal
END
check "there is a hot journal" test -s hot.db-journal
doctor 1 "a hot journal" hot.db
finds error schema "rollback journal" "may write"
timeout 60 "$pawl" stats hot.db >out 2>err
check "  stats refuses it, with the remedy" grep -q "undone" err
check "  and leaves it alone" test -s hot.db-journal
eval "$("$pawl" doctor hot.db | sed -n 's/.*may write: //p')" >/dev/null
check "  the remedy works" test ! -e hot.db-journal

fresh; dd if=/dev/urandom of=case.db bs=4096 seek=9 count=3 conv=notrunc 2>err
doctor 1 "damaged pages" case.db
check "  it says so" grep -q "^error" out

# --------------------------------------------------------------------------------- around it

fresh; chmod 644 case.db
doctor 1 "everybody may read it" case.db
finds warning mode "may read it (mode 0644)" "chmod o="
chmod 640 case.db
doctor 0 "its group may read it" case.db
finds note mode "group may read" "chmod g="

fresh; ln case.db other-name.db
doctor 1 "hard links" case.db
finds error file "2 hard links" "samefile"
rm other-name.db

ln -s case.db link.db
doctor 0 "a symbolic link" link.db
finds note file "symbolic link" ""

if [ "$(id -u)" -eq 0 ]; then
    fresh; chmod 755 "$work"; chmod 600 case.db
    setpriv --reuid=65534 --clear-groups "$pawl" doctor case.db >out 2>err
    status=$?
    if grep -q . out; then
        check "unreadable: exit 1" test $status -eq 1
        finds error mode "cannot be read" "owner of the file"
    else
        skip "unreadable" "the command cannot be run by another user"
    fi
    fresh; leave_log; chown 65534 left.db-wal
    doctor 1 "a log of another owner" left.db
    finds warning mode "belongs to user 65534" "chown"
    chmod 700 "$work"
else
    fresh; chmod 000 case.db
    doctor 1 "unreadable" case.db
    finds error mode "cannot be read" "owner of the file"
    chmod 600 case.db
fi

# What is pasted into a shell runs the command that is shown, whatever the names are (V1).
odd="$work/odd; touch pwned;
\$(touch pwned)"
mkdir "$odd"; cp template.db "$odd/case.db"
"$pawl" pause "$odd/case.db" default >/dev/null
"$pawl" enqueue "$odd/case.db" --kind greet --queue "x'; touch pwned; '" a >/dev/null
"$pawl" pause "$odd/case.db" "x'; touch pwned; '" >/dev/null
ln "$odd/case.db" "$odd/two.db"; chmod 644 "$odd/case.db"
sql "$odd/case.db" "UPDATE sqlite_sequence SET seq = 1 WHERE name = 'pawl_job'; UPDATE pawl_lane SET ready = 7"
doctor 1 "names that a shell gives a meaning to" "$odd/case.db"
check "  each line is a finding or a remedy" sh -c '! grep -qvE "^(ok|note|warning|error|errors:|  ) " out'
finds error file "2 hard links" "samefile '"
finds warning mode "may read it" "chmod o= '"
finds warning paused 'queue "x' "pawl resume '"
sed -n 's/.*\(find DIR\|pawl resume\|chmod o=\|sqlite3 \)/\1/p' out | sed 's/ lets them run$//' >lines
while read -r line; do sh -c "$line" >/dev/null 2>&1; done <lines
check "  nothing else runs" test ! -e pwned
timeout 60 "$pawl" doctor "./-odd; x.db" >out 2>err
finds error file "does not exist" "pawl init '\./-odd; x\.db'"
timeout 60 "$pawl" doctor -- "-odd; x.db" >out 2>err
finds error file "does not exist" "pawl init '\./-odd; x\.db'"

fresh; mkdir -p small
if unshare -m sh -c 'mount -t tmpfs -o size=4m tmpfs small && cp case.db small/ && "$0" doctor small/case.db' \
    "$pawl" >out 2>err || grep -q "^[a-z]* *disk" out; then
    finds warning disk "are free" "make room"
else
    skip "a small disk" "no file system can be mounted"
fi

# A pool sees to it that its side files are written in place; the database is the user's.
fresh; mkdir -p cow
cat >cow.sh <<'END'
mount -o loop cow.img cow && cp case.db cow/ || exit 1
"$1" doctor cow/case.db >out 2>err
: >said
{
    tries=0
    until grep -q ready said || [ $tries -ge 400 ]; do tries=$((tries + 1)); sleep 0.05; done
    lsattr -d cow/case.db-pawl cow/case.db-pawl/* >attributes
} | "$2" work cow/case.db 60000 1 >said 2>err
mkdir cow/inside && chattr +C cow/inside && cp case.db cow/inside/
"$1" doctor cow/inside/case.db >out.inside 2>&1
exit 0
END
if command -v mkfs.btrfs >/dev/null && truncate -s 120M cow.img && mkfs.btrfs -q cow.img >/dev/null 2>&1 \
    && timeout 60 unshare -m sh ./cow.sh "$pawl" "$worker" 2>cow.err; then
    finds note filesystem "btrfs" "chattr +C"
    check "  side files on btrfs are written in place" test "$(grep -c '^-*C-* ' attributes)" -eq 3
    check "  and so is a database in such a directory" grep -q "^ok  *filesystem" out.inside
else
    skip "btrfs" "it cannot be made and mounted"
fi
rm -f cow.img

# ------------------------------------------------------------------ what the schema cannot state

# bend WHAT SEVERITY CHECK PART REMEDY SQL: counters follow, so that this is the only fault.
recount="UPDATE pawl_lane SET (ready, later, running, succeeded) = (SELECT count(*) FILTER (WHERE status = 2),
    count(*) FILTER (WHERE status = 8), count(*) FILTER (WHERE status = 3), count(*) FILTER (WHERE status = 4)
    FROM pawl_job WHERE lane = pawl_lane.id); UPDATE pawl_lane SET enqueued = ready + later + running + succeeded
    + failed + cancelled + blocked + pruned;"
bend()
{
    fresh; sql case.db "$6; $recount"
    doctor 1 "$1" case.db
    finds "$2" "$3" "$4" "$5"
    check "  nothing else is wrong" test "$(grep -cE '^(warning|error) ' out)" -le "${7:-1}"
}
epoch=$((1 << 40))
far=$(($(date +%s) * 1000 + 7200000))
lease=$(awk '{ printf "%d", $1 * 1000 + 60000 }' /proc/uptime)
run="status = 3, attempts = 1, fence = $epoch, lease_until = $far, lease_boot = $lease"
sqlite3 template.db "PRAGMA wal_autocheckpoint=0; UPDATE pawl_meta SET value = 1 WHERE key = 'fence'" >/dev/null
run="$run + 0, fence = $epoch + 1"

fresh; sql case.db "UPDATE pawl_lane SET ready = ready + 5, enqueued = enqueued + 1"
doctor 1 "counters that do not fit" case.db
finds error counters "ready is 6 and should be 1, enqueued is 4 and should be 3" "stop the pools"
apply_remedy

bend "a running job without a holder" warning claims "holder that does not exist: 1 (the first is 1)" "sweep" \
    "UPDATE pawl_job SET $run, holder = 999 WHERE id = 1"
bend "a running job of a pool that has left" warning claims "signed off: 1" "lease has run out" \
    "INSERT INTO pawl_holder (id, name, side, pid, started, boot, pid_space, joined_at, left_at)
     VALUES (7, 'gone', '1-1-0', 1, 1, 'x', 1, 1, 2); UPDATE pawl_job SET $run, holder = 7 WHERE id = 1"
bend "a running job that was never claimed" error claims "without ever having been claimed" "take" \
    "UPDATE pawl_job SET $run, fence = $epoch, holder = 999 WHERE id = 1" 2
bend "a fence from the future" error fences "was not given out yet" "epoch" \
    "UPDATE pawl_job SET fence = $epoch + 1000 WHERE id = 1"
apply_remedy
bend "more attempts than there may be" error attempts "more attempts than they may have" "attempts = max_attempts" \
    "UPDATE pawl_job SET attempts = 9 WHERE id <> 2" 3
apply_remedy
bend "a pending job without an attempt left" error attempts "no attempt is left" "max_attempts - 1" \
    "UPDATE pawl_job SET attempts = max_attempts WHERE id = 1"
apply_remedy
bend "a running job that was not charged" error attempts "without an attempt being counted" "attempts = 1" \
    "UPDATE pawl_job SET $run, attempts = 0, holder = 999 WHERE id = 1" 2
run_remedy
doctor 1 "  after the remedy" case.db
check "  only the holder is missing" test "$(grep -cE '^(warning|error) ' out)" -eq 1
bend "a success without an attempt" error attempts "succeeded without" "enqueue" \
    "UPDATE pawl_job SET status = 4 WHERE id = 1"
apply_remedy
bend "a lane that does not exist" error rows "a lane that does not exist: 1" "delete these rows" \
    "UPDATE pawl_job SET lane = 77 WHERE id = 1"
apply_remedy
bend "a kind that is not its lane's" error rows "another kind than their lane: 1" "UPDATE pawl_job SET kind" \
    "INSERT INTO pawl_kind (name) VALUES ('other'); UPDATE pawl_job SET kind = 2 WHERE id <> 2;
     UPDATE pawl_job SET lane = 77 WHERE id = 1" 2
check "  its remedy stops the pools, and is whole" grep -q "stop the pools.*wal_autocheckpoint=0; BEGIN IMMEDIATE" remedy
run_remedy
doctor 1 "  after the remedy" case.db
check "  only the lane is missing" test "$(grep -cE '^(warning|error) ' out)" -eq 1
bend "a trigger of somebody's" warning triggers "trigger app x's on pawl_job is not pawl's" "DROP TRIGGER \"app x" \
    "CREATE TRIGGER \"app x's\" AFTER UPDATE ON pawl_job BEGIN SELECT 1; END"
apply_remedy
bend "ready before its time" warning rows "due in the future" "clock" \
    "UPDATE pawl_job SET available_at = $far WHERE id = 1"
bend "an id beyond the sequence" error sequence "job 3 is beyond" "INSERT INTO sqlite_sequence" \
    "UPDATE sqlite_sequence SET seq = 1 WHERE name = 'pawl_job'"
apply_remedy
check "  pawl goes on with the next id" test "$("$pawl" enqueue case.db --kind greet d)" = 4
bend "a sequence that is gone" error sequence "job 3 is beyond" "INSERT INTO sqlite_sequence" \
    "DELETE FROM sqlite_sequence"
apply_remedy
fresh; sql case.db "DELETE FROM sqlite_sequence"
check "  a pool does without" test "$("$pawl" enqueue case.db --kind greet d)" = 4
check "  and gives new lanes their ids" test "$("$pawl" enqueue case.db --kind other e)" = 5
doctor 0 "  which heals it" case.db
bend "history without a job" warning history "belong to no job.*: 1" "DELETE FROM" \
    "INSERT INTO pawl_attempts VALUES (99, 1, 1, 'failed', 1, 1, 1, 1, NULL)"
apply_remedy
fresh; sql case.db "CREATE TABLE p (a); CREATE TABLE k (x REFERENCES p (a)); INSERT INTO k VALUES (1)"
doctor 0 "a key that makes no sense, of the application's" case.db
finds note foreign-keys "foreign key mismatch" ""
bend "a key to pawl's that makes no sense" error foreign-keys "what pawl writes to it is refused" "pawl_job (id)" \
    "CREATE TABLE k (x REFERENCES pawl_job (nocol))"
fresh; sql case.db "CREATE TABLE k (x REFERENCES pawl_job (id))"
doctor 0 "a key that keeps finished jobs" case.db
finds note foreign-keys "k refers to pawl_job" "ON DELETE SET NULL"
bend "a lane whose kind is gone" error foreign-keys "of pawl_lane refers" "put it back" \
    "PRAGMA foreign_keys = OFF; DELETE FROM pawl_kind"
bend "a lease that has run out" warning leases "past their lease: 1" "start a pool" \
    "UPDATE pawl_job SET $run, holder = 999, lease_boot = 1 WHERE id = 1" 2
bend "a lease far ahead" warning leases "no pool can have given.*: 1" "takes them back" \
    "UPDATE pawl_job SET $run, holder = 999, lease_boot = 999999999999 WHERE id = 1" 2

fresh; sql case.db "UPDATE pawl_job SET available_at = 1000 WHERE id = 2"
doctor 0 "due while no pool ran" case.db
finds note rows "fallen due while no pool ran: 1" ""

fresh; sql case.db "INSERT OR REPLACE INTO pawl_meta VALUES ('sql_writer', 1700000000000)"
doctor 0 "a foreign writer" case.db
if grep -q "has the WAL-reset race: in a trial" out; then
    finds note writers "2023-11-14 22:13:20 UTC" "PRAGMA wal_autocheckpoint=0;"
    finds note writers "by SQL or by pawl_enqueue_in" ""
fi

fresh; "$pawl" pause case.db default >/dev/null
doctor 1 "a paused queue with jobs" case.db
finds warning paused 'queue "default" is paused' "pawl resume"
"$pawl" pause case.db nothing >/dev/null; "$pawl" resume case.db default >/dev/null
doctor 0 "a paused queue without jobs" case.db
finds note paused 'queue "nothing"' ""

# ---------------------------------------------------------------------------------- processes

fresh
"$pawl" enqueue case.db --kind hang x >id
job=$(cat id)
start_worker case.db
await "the job runs" grep -q "start hang $job" said
sql case.db "UPDATE pawl_job SET available_at = 1000 WHERE id = 1"
doctor 1 "due jobs that nobody serves" case.db
finds warning waiting 'kind "greet" in queue "default": 1 due' "registers this kind"
"$pawl" cancel case.db 1 >/dev/null

kill -STOP "$WORKER_PID"
doctor 1 "a frozen process" case.db
finds warning pools "(pid $WORKER_PID) is stopped" "kill -CONT $WORKER_PID"
finds warning pools "hold.* until their leases run out: 1, whose leases have run out: 0" "kill -9 $WORKER_PID"
"$pawl" explain case.db "$job" >out 2>err
check "  explain says so" grep -q "job $job runs .*stopped by a signal: kill -CONT $WORKER_PID" out
before=$(ask case.db "SELECT lease_boot FROM pawl_job WHERE id = $job")
at_work=yes
sql case.db "UPDATE pawl_job SET lease_boot = $(awk '{ printf "%d", $1 * 1000 }' /proc/uptime) WHERE id = $job"
doctor 1 "a frozen process, and its lease is over" case.db
finds warning pools "hold.* until their leases run out: 0, whose leases have run out: 1" ""
finds warning leases "past their lease: 1; the only pool" "kill -CONT $WORKER_PID"
"$pawl" stats case.db --json >stats.json
check "  stats counts the same" test \
    "$(sqlite3 :memory: "SELECT json_extract(readfile('stats.json'), '\$.total.expired')")" = 1
sql case.db "UPDATE pawl_job SET lease_boot = $before WHERE id = $job"
at_work=no
kill -CONT "$WORKER_PID"

side=$(ask case.db "SELECT side FROM pawl_holder WHERE left_at IS NULL")
mv "case.db-pawl/$side" hidden
doctor 1 "a pool whose side file is gone" case.db
finds warning pools "cannot be proven" "leases run out"
mv hidden "case.db-pawl/$side"

# A log that is held: a reader that lingers, and much that is written.
mkfifo ask
sqlite3 case.db <ask >reader.out 2>&1 &
reader=$!
pids="$pids $reader"
exec 8>ask
echo "BEGIN; SELECT 'holds', count(*) FROM pawl_job;" >&8
await "the reader holds the log" grep -q holds reader.out
sql case.db "CREATE TABLE app (x); WITH n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 9000)
    INSERT INTO app SELECT zeroblob(4000) FROM n"
at_work=yes
doctor 1 "a log that a reader holds" case.db
at_work=no
finds warning wal "the log has 3[0-9] MiB, and process $reader holds it with a read" "sqlite3 (pid $reader)"
kill -STOP "$WORKER_PID"
exec 8>&-
wait $reader 2>/dev/null
at_work=yes
doctor 1 "a log that is long, and nobody holds it" case.db
at_work=no
finds note wal "the log has 3[0-9] MiB; pools keep it within wal_bytes_max" ""
kill -CONT "$WORKER_PID"
await "the log is small again" sh -c 'test "$(wc -c <case.db-wal)" -lt 20000000'

cp "case.db-pawl/$side" case.db-pawl/999999999-1-0
doctor 0 "a side file that belongs to nobody" case.db
finds note side-files "dead and forgotten: 1" "removes"
rm case.db-pawl/999999999-1-0

end_worker
doctor 1 "a process that was killed" case.db
finds warning pools "has died; jobs that still run under its name: 1" "start a pool"
"$pawl" explain case.db "$job" >out 2>err
check "  explain says so" grep -q "job $job was claimed .*whose process has died; the next pool" out
"$pawl" show case.db "$job" >out 2>err
check "  show says so" grep -q '^status  *running (its process has died; a pool takes it back)$' out
"$pawl" list case.db --status running >out 2>err
check "  list says so" grep -q "^ *$job  running (died)  " out
"$pawl" show case.db "$job" --json >out 2>err
check "  and so in JSON" test "$(sqlite3 :memory: "SELECT json_extract(readfile('out'), '\$.holder_died')")" = 1

# Nobody but producers by SQL, who leave the log alone as they are told.
fresh
rm -f ask; mkfifo ask
sqlite3 case.db <ask >reader.out 2>&1 &
producer=$!
pids="$pids $producer"
exec 8>ask
echo "PRAGMA wal_autocheckpoint=0; CREATE TABLE app (x); WITH n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n
    WHERE i < 70) INSERT INTO app SELECT zeroblob(1000000) FROM n; SELECT 'done';" >&8
await "much is written" grep -q done reader.out
doctor 1 "a log that nobody shortens" case.db
finds warning wal "the log has 6[0-9] MiB, and no pool runs" "pawl pause .*case.db pawl-doctor"
sed -i 's/^.*once: //' remedy
run_remedy
doctor 0 "  after the remedy" case.db
echo "INSERT INTO app SELECT x FROM app;" >&8
await "much is written again" sh -c 'test "$(wc -c <case.db-wal)" -gt 70000000'
kill -9 "$producer"; exec 8>&-; wait "$producer" 2>/dev/null
doctor 1 "  whose writer is dead" case.db
finds warning wal "no pool runs" "pawl init .*case.db"
sed -i 's/^.*once: //' remedy
apply_remedy

# A second copy of SQLite. Not beside a sanitizer: its library must be the first.
library=$(ldd "$pawl" | sed -n 's/.*libsqlite3[^ ]* => \([^ ]*\) .*/\1/p')
if ldd "$pawl" | grep -qE 'lib[at]san' || [ -z "$library" ]; then
    skip "a second SQLite" "built with a sanitizer"
else
    sed 's/libsqlite3\.so\.0/libsqlite3.so.9/g' "$library" >other.so
    fresh
    LD_PRELOAD=$work/other.so timeout 60 "$pawl" doctor case.db >out 2>err
    check "two copies of SQLite here: exit 1" test $? -eq 1
    finds warning copies "2 copies of SQLite" "libpawl is linked with"
    LD_PRELOAD=$work/other.so start_worker case.db
    doctor 1 "two copies of SQLite in a pool's process" case.db
    finds warning copies "(pid $WORKER_PID)" "libpawl is linked with"
    end_worker
fi

# ------------------------------------------------------------------------------------ explain

# says STATUS PATTERN ID...
says()
{
    timeout 60 "$pawl" explain case.db "$3" >out 2>err </dev/null
    status=$?
    check "explain: $2" test "$status" -eq "$1"
    if [ "$1" -eq 0 ]; then check "  in these words" grep -qE "^job $3 $2" out; else check "  in these words" grep -qE "$2" err; fi
    check "  one line" test "$(cat out err | wc -l)" -eq 1
}
fresh
says 0 'waits: no pool is running on this file; it has been due for .* UTC\)$' 1
says 0 'waits: it is due in (59 m [0-9]+ s|1 h) .*; no pool is running on this file$' 2
says 0 "was cancelled .* ago .*; pawl requeue .*case.db 3 starts it after all$" 3
says 1 'has no job 4$' 4
sql case.db "DELETE FROM pawl_job WHERE id = 3"
says 1 'has no job 3 any more: it was pruned .* or deleted by hand$' 3
timeout 60 "$pawl" explain case.db >out 2>err
check "explain without an id: exit 2" test $? -eq 2

fresh
"$pawl" pause case.db default >/dev/null
says 0 "waits: queue \"default\" is paused since .* UTC; pawl resume .*case.db default lets it run$" 1
says 0 'waits: queue "default" is paused since .*, and it is not due before .* UTC; pawl resume' 2
"$pawl" resume case.db default >/dev/null

# Whoever names a queue, or a file, does not choose what an operator pastes. The command is run as it is shown.
run_shown()
{
    sed -n "s/^.*\(pawl $1 .*\)$2\$/\1/p" out >command
    check "  the command is shown" test -s command
    (
        pawl() { "$pawl" "$@"; }
        eval "$(cat command)"
    ) >out 2>err </dev/null
    check "  it works as it is pasted" test $? -eq 0
    check "  and does nothing else" test ! -e pasted
}
fresh
hostile="it's; touch pasted; \$(touch pasted) \`touch pasted\`"
"$pawl" enqueue case.db --kind greet --queue "$hostile" x >/dev/null
"$pawl" pause case.db "$hostile"
says 0 'waits: queue .* is paused since' 4
run_shown resume ' lets it run'
says 0 'waits: no pool is running' 4
at=$PWD
mkdir "in'\$(touch pasted)"
cp case.db "in'\$(touch pasted)/case.db"
cd "in'\$(touch pasted)" || exit 1
says 0 'was cancelled' 3
run_shown requeue ' starts it after all'
"$pawl" cancel case.db 3 >/dev/null
mv case.db "$(printf 'a\033[31m.db')"
timeout 60 "$pawl" explain a*.db 3 >out 2>err
check "explain: a path's control bytes are escaped" grep -qF 'a\x1B[31m.db' out
timeout 60 "$pawl" list "missing;touch pasted" >err 2>out
run_shown init ''
cd "$at" || exit 1

fresh
sql case.db "UPDATE pawl_job SET attempts = 2, last_error = 'smtp: no route' WHERE id = 2"
says 0 'waits for its next attempt, due in .*; attempt 2 of 5 did not succeed: smtp: no route; no pool' 2
sql case.db "UPDATE pawl_job SET status = 5, attempts = 5, last_error = char(27) || 'boom' WHERE id = 1"
says 0 'failed .* ago .* after 5 of 5 attempts: .x1Bboom; pawl requeue .*case.db 1 starts it again$' 1
check "  escaped" sh -c "! grep -q '$escape' out"
sql case.db "UPDATE pawl_job SET attempts = 2 WHERE id = 1"
says 0 'failed .* ago .* for good, after 2 of 5 attempts' 1
sql case.db "UPDATE pawl_job SET status = 4 WHERE id = 1"
says 0 'succeeded .* ago .* in attempt 2$' 1
sql case.db "UPDATE pawl_job SET status = 7 WHERE id = 1"
says 0 'waits for other jobs to end$' 1
sql case.db "UPDATE pawl_job SET status = 2, lane = 50 WHERE id = 1"
says 0 'cannot run: its lane does not exist, .* by hand; no pool ever looks at it: pawl doctor .*case.db tells' 1
sql case.db "UPDATE pawl_job SET status = 8 WHERE id = 1"
says 0 'cannot run: its lane does not exist, .*; the first pool that looks at it when it is due fails it$' 1
sql case.db "UPDATE pawl_job SET lane = 1, $run, holder = 999 WHERE id = 1"
says 0 'runs for .* in a pool that is not known any more, lease until .* UTC: then a pool takes it back$' 1
sql case.db "UPDATE pawl_job SET lease_boot = 1 WHERE id = 1"
says 0 'runs for .*; its lease ran out at .*, and the next pool that looks takes it back' 1
sql case.db "UPDATE pawl_job SET lease_boot = 999999999999 WHERE id = 1"
says 0 'runs for .* any more; its lease is longer than any pool gives one, and the next pool that looks takes it back$' 1
sql case.db "INSERT INTO pawl_holder (id, name, side, pid, started, boot, pid_space, joined_at, left_at)
    VALUES (7, 'gone', '1-1-0', 1, 1, 'x', 1, 1, 2); UPDATE pawl_job SET $run, holder = 7 WHERE id = 1"
says 0 'was claimed .* ago .* by gone .pid 1., which has signed off, lease until .* UTC: then a pool takes it back$' 1
fresh
sql case.db "UPDATE pawl_job SET available_at = $far WHERE id = 1"
says 0 'waits: no pool is running on this file; it is ready, although its time is in .*, because the clock' 1

fresh
"$pawl" enqueue case.db --kind greet d >/dev/null
"$pawl" enqueue case.db --kind greet --priority 5 e >/dev/null
"$pawl" enqueue case.db --kind hang x >/dev/null
start_worker case.db
await "the job runs" grep -q "start hang 6" said
says 0 'is due for .*; 2 jobs stand before it in its lane, but no job of it runs: .*kind "greet"' 4
says 0 'is due for .* and is the first of its lane, but no job of it runs' 5
says 0 'is due for .*; 1 job stands before it' 1
sql case.db "UPDATE pawl_job SET available_at = $far WHERE id = 5"
says 0 'is ready, although its time is in .* by hand and is the first of its lane' 5
"$pawl" enqueue case.db --kind wait y >/dev/null
"$pawl" enqueue case.db --kind wait y >/dev/null
await "the worker has no executor free" grep -q "start wait 7" said
says 0 'is due for .* first of its lane; 1 of it is running: it starts when a pool .* free executor, and fewer jobs' 8
says 0 'waits: it is due in .* UTC\)$' 2
says 0 "runs for .* in .*\\(pid $WORKER_PID\\), lease until .* UTC$" 6
"$pawl" show case.db 6 >out 2>err
check "show: it runs, and nobody has died" grep -q '^status  *running$' out
"$pawl" show case.db 6 --json >out 2>err
check "  and so in JSON" test "$(sqlite3 :memory: "SELECT json_extract(readfile('out'), '\$.holder_died')")" = 0
sql case.db "UPDATE pawl_job SET cancel = 1 WHERE id = 6"
says 0 'runs for .*; it was cancelled, and told to stop: its handler has not returned yet$' 6
sql case.db "UPDATE pawl_job SET cancel = 0, timeout_ms = 5000, claimed_at = claimed_at - 65000 WHERE id = 6"
says 0 'runs for .*, lease .*; its timeout of 5000 ms passed 1 m.* ago .*: it was told to stop then, and loses its claim' 6
"$pawl" show case.db 6 >out 2>err
check "show says that a timeout has passed" grep -q '^timeout  *5s  (passed 1m[0-9]*s* ago)$' out
sql case.db "UPDATE pawl_job SET timeout_ms = 500000, cancel = 1 WHERE id = 6"
says 0 "runs for .*, lease until .* UTC; it was cancelled" 6
"$pawl" explain case.db 6 --json >out 2>err
check "explain: JSON" test \
    "$(sqlite3 :memory: "SELECT json_extract(readfile('out'), '\$.id') || json_extract(readfile('out'), '\$.status') || (json_extract(readfile('out'), '\$.text') LIKE 'job 6 runs %')")" = 6running1
end_worker

printf '%d passed, %d failed\n' "$passed" "$failed"
[ "$failed" -eq 0 ]
