#!/bin/sh
# ingest_test.sh PAWL_INGEST PAWL - the sample application, from outside.
#
# Goals: file by file it agrees with sha256sum, whatever the names; a second run does nothing; a file
# that changed is one row, not two; what cannot be read fails with its reason, what changed under the
# job is tried again (I19: a row exists exactly if its job succeeded); SIGINT hands everything back;
# and ten kill -9, each with an immediate restart, end in the same result, without waiting for a
# lease (I2, I4, I7, I11).
set -eu
ingest=$1
pawl=$2
work=$(mktemp -d)
trap 'chmod -R u+rwx "$work"; rm -rf "$work"' EXIT
tree=$work/tree
db=$work/test.db

die() { printf 'ingest_test: %s\n' "$*" >&2; exit 1; }
ok()  { printf 'ok: %s\n' "$*"; }

sql() { sqlite3 "$db" "$1"; }

# expect WANTED SQL
expect()
{
    got=$(sql "$2")
    [ "$got" = "$1" ] || die "wanted $1, got $got, from: $2"
}

# run STATUS ARGUMENT...: pawl-ingest ends with that status; what it prints is in $work/out and /err.
run()
{
    wanted=$1
    shift
    code=0
    "$ingest" --db "$db" "$@" >"$work/out" 2>"$work/err" || code=$?
    [ "$code" = "$wanted" ] || { cat "$work/out" "$work/err" >&2; die "wanted $wanted, got $code: $*"; }
}

prints() { grep -q -e "$1" "$work/out" "$work/err" || { cat "$work/out" "$work/err" >&2; die "does not print: $1"; }; }

seconds() { awk "BEGIN { print $1 / 1000 }"; }
now_ms() { echo $(($(date +%s%N) / 1000000)); }

# The two sides to compare: each line is the hexadecimal form of "SHA256  PATH".
digests_of_files()
{
    find "$@" -type f -print0 | xargs -0 sha256sum -z | od -A n -v -t x1 | tr -d '\n' |
        sed 's/ 00/\n/g' | tr -d ' ' | sort
}

digests_of_table()
{
    sql "SELECT lower(hex(lower(hex(sha256)) || '  ') || hex(CAST(path AS BLOB))) FROM ingest_file" |
        sort
}

same_digests()
{
    digests_of_files "$@" >"$work/wanted"
    digests_of_table >"$work/got"
    cmp -s "$work/wanted" "$work/got" ||
        die "$(comm -3 "$work/wanted" "$work/got" | wc -l) rows differ from sha256sum"
}

# ---------------------------------------------------------------------------------- the input
mkdir -p "$tree/deep/er/still" "$tree/many"
printf 'three words here\n second\tline \n' >"$tree/plain.txt"
printf 'no newline at the end' >"$tree/deep/er/still/short.txt"
: >"$tree/empty"
head -c 10000000 /dev/zero | tr '\0' 'x' >"$tree/big"
for name in "two words" "new
line" "$(printf 'tab\tand\033[31mred')" "$(printf 'not\377\376utf8')" 'back\slash' -dash "$(printf 'gr\303\274n')"; do
    printf '%s\n' "$name" >"$tree/$name"
done
ln -s plain.txt "$tree/link"
ln -s nowhere "$tree/dangling"
ln -s .. "$tree/deep/loop"
mkfifo "$tree/pipe"
seq 3000 | split -l 1 -a 4 - "$tree/many/f"

# The machine's own headers too, unless they are too many for the time there is.
set -- "$tree"
for headers in /usr/include /usr/include/linux; do
    [ -d "$headers" ] && [ "$(find "$headers" -type f | wc -l)" -le 10000 ] || continue
    set -- "$@" "$headers"
    break
done
files=$(find "$@" -type f -printf . | wc -c)

# -------------------------------------------------------------------------------- command line
run 2
run 2 --executors 0 "$tree"
run 2 --executors 9x "$tree"
run 2 --no-such-option "$tree"
run 2 "$work/missing"
run 2 "$tree/plain.txt"
[ ! -e "$db" ] || die "wrong usage made a database"
run 0 --help
prints "Usage: pawl-ingest"
run 1 --db "$work/missing/test.db" "$tree"
ok "wrong usage is refused, and nothing is created"

# ------------------------------------------------------------------------------ the same result
began=$(now_ms)
run 0 --executors 3 "$@"
took=$(($(now_ms) - began))
same_digests "$@"
expect "$files" "SELECT count(*) FROM pawl_jobs WHERE status = 'succeeded' AND attempts = 1"
expect "0" "SELECT count(*) FROM pawl_jobs WHERE status <> 'succeeded'"
expect "2|5|31" "SELECT lines, words, bytes FROM ingest_file WHERE path = '$tree/plain.txt'"
expect "0|5|21" "SELECT lines, words, bytes FROM ingest_file WHERE path LIKE '%/short.txt'"
expect "0|0|0" "SELECT lines, words, bytes FROM ingest_file WHERE path = '$tree/empty'"
expect "0|1|10000000" "SELECT lines, words, bytes FROM ingest_file WHERE path = '$tree/big'"
expect "1" "SELECT count(*) FROM ingest_file WHERE typeof(path) = 'blob'"
[ "$(stat -c %a "$db")" = 600 ] || die "others can read the database"
ok "$files files agree with sha256sum, $took ms"

sql "SELECT id, status, attempts, finished_at FROM pawl_jobs ORDER BY id" >"$work/before"
run 0 "$@"
prints "Nothing new"
sql "SELECT id, status, attempts, finished_at FROM pawl_jobs ORDER BY id" | cmp -s - "$work/before" ||
    die "the second run changed something"
ok "a second run does nothing, and says so"

printf 'and more\n' >>"$tree/plain.txt"
run 0 "$@"
same_digests "$@"
expect "$((files + 1))" "SELECT count(*) FROM pawl_jobs"
expect "3|7" "SELECT lines, words FROM ingest_file WHERE path = '$tree/plain.txt'"
ok "a file that changed is read again, and stays one row"

# -------------------------------------------------------------------------- failures, retries
# A job may name what is gone, or another version than the one on the disk, once it is claimed.
sneaky=$(printf '%s/gone\033]0;x\007\nforged' "$work")
"$pawl" enqueue "$db" --kind ingest-file --max-attempts 3 "5 1 $sneaky" >/dev/null
"$pawl" enqueue "$db" --kind ingest-file "1 1 $tree/two words" >/dev/null
"$pawl" enqueue "$db" --kind ingest-file "nonsense" >/dev/null
"$pawl" enqueue "$db" --kind ingest-file "1 1 $tree/deep" >/dev/null
run 1 "$@"
prints 'gone.x1b.*x07.nforged: cannot open: No such file or directory'
prints 'nonsense: the payload does not name a file'
prints 'deep: not a regular file'
! grep -q "$(printf '\033]')" "$work/out" || die "a path's escape sequence reached the output"
expect "1" "SELECT attempts FROM pawl_jobs WHERE last_error LIKE 'cannot open%'"
expect "succeeded|2" "SELECT status, attempts FROM pawl_jobs WHERE CAST(payload AS TEXT) = '1 1 $tree/two words'"
expect "3" "SELECT count(*) FROM pawl_jobs WHERE status = 'failed'"
same_digests "$@"
ok "what is gone fails at once with its reason; what changed is tried again"

# Files that this user may not read; root may read all, so it becomes somebody else.
as_user=
[ "$(id -u)" != 0 ] || as_user="setpriv --reuid=65534 --regid=65534 --clear-groups"
mkdir "$work/closed" "$work/closed/dir"
chmod 755 "$work"
echo secret >"$work/closed/file"
echo open >"$work/closed/open"
chmod 0 "$work/closed/file" "$work/closed/dir"
if $as_user test -x "$ingest"; then
    mkdir -m 777 "$work/theirs"
    db=$work/theirs/test.db
    code=0
    $as_user "$ingest" --db "$db" "$work/closed" >"$work/out" 2>"$work/err" || code=$?
    [ "$code" = 1 ] || { cat "$work/out" "$work/err" >&2; die "unreadable files: exit status $code"; }
    prints 'closed/file: cannot open: Permission denied'
    prints 'closed/dir: Permission denied'
    expect "failed|1" "SELECT status, attempts FROM pawl_jobs WHERE CAST(payload AS TEXT) LIKE '%/file'"
    expect "$work/closed/open" "SELECT path FROM ingest_file"
    ok "unreadable files and directories are reported, the rest is ingested"
else
    ok "skipped: another user cannot run the program here"
fi

# ------------------------------------------------------------------------------------- signals
# --foreground: one signal, to the program only. A second one would end it on the spot.
db=$work/stop.db
code=0
timeout --foreground --preserve-status -s INT "$(seconds $((took / 8)))" \
    "$ingest" --db "$db" "$@" >"$work/out" 2>"$work/err" || code=$?
[ "$code" = 130 ] || die "SIGINT: exit status $code"
prints "To go on, run the same command again"
expect "0" "SELECT count(*) FROM pawl_jobs WHERE status = 'running'"
run 0 "$@"
same_digests "$@"
ok "SIGINT gives the jobs back, and the next run goes on"

# ------------------------------------------------------------------------------------- kill -9
# Every row's writes are counted, from outside the library.
fresh_database()
{
    db=$work/kill-$1.db
    mkdir -p "$work/nothing"
    run 0 "$work/nothing"
    sql "CREATE TABLE writes (path, job);
         CREATE TRIGGER made AFTER INSERT ON ingest_file BEGIN
             INSERT INTO writes VALUES (new.path, new.job); END;
         CREATE TRIGGER changed AFTER UPDATE ON ingest_file BEGIN
             INSERT INTO writes VALUES (new.path, new.job); END;"
}

kills=0
databases=1
delays=
fresh_database 1
while [ "$kills" -lt 10 ]; do
    delay=$(shuf -i "$((took / 50 + 1))-$((took / 8 + 2))" -n 1)
    code=0
    timeout --foreground -s KILL "$(seconds "$delay")" \
        "$ingest" --db "$db" "$@" >"$work/out" 2>"$work/err" || code=$?
    case $code in
    137) kills=$((kills + 1)) delays="$delays $delay" ;;
    0 | 124) databases=$((databases + 1)) && fresh_database "$databases" ;;
    *) cat "$work/out" "$work/err" >&2 && die "a restart ended with $code, after kills at$delays ms" ;;
    esac
done
began=$(now_ms)
run 0 "$@"
last=$(($(now_ms) - began))
[ "$last" -lt 45000 ] || die "the last run took $last ms: it waited for a lease"
same_digests "$@"
expect "$files" "SELECT count(*) FROM pawl_jobs WHERE status = 'succeeded'"
expect "$files" "SELECT count(*) FROM pawl_jobs"
expect "$files|$files|$files" "SELECT count(*), count(DISTINCT path), count(DISTINCT job) FROM writes"
expect "0" "SELECT count(*) FROM ingest_file WHERE job NOT IN (SELECT id FROM pawl_jobs)"
expect "ok" "PRAGMA integrity_check"
ok "ten kill -9 (after$delays ms), then $last ms to the same result, each row written once"
