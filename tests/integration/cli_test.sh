#!/bin/sh
# cli_test.sh PAWL - the pawl command from outside: every verb, its exit statuses, what it prints
# to whom, and that reading never writes. sqlite3 judges the JSON, script plays the terminal.
set -u

pawl=$1
case $pawl in
/*) ;;
*) pawl=$PWD/$pawl ;;
esac
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
cd "$work" || exit 1
for needed in "$pawl" sqlite3 script; do
    command -v "$needed" >/dev/null || { echo "cli_test.sh: $needed is missing" >&2; exit 1; }
done
unset COLUMNS NO_COLOR POSIXLY_CORRECT
TERM=xterm
LC_ALL=C
export TERM LC_ALL

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
    sed 's/^/#   out: /' out | head -n 20
    sed 's/^/#   err: /' err | head -n 20
}

# check WHAT COMMAND...: the command must succeed.
check()
{
    what=$1
    shift
    if "$@"; then ok "$what"; else not_ok "$what"; fi
}

# run ARGUMENT...: the command's output is in the files out and err, its exit status in $status.
run()
{
    timeout 60 "$pawl" "$@" >out 2>err </dev/null
    status=$?
}

# expect STATUS WHAT ARGUMENT...
expect()
{
    expected=$1
    what=$2
    shift 2
    run "$@"
    check "$what: exit $expected" test "$status" -eq "$expected"
}

# on_terminal ARGUMENT...: the same with a terminal as standard output and error, both in out.
# No argument may contain a quote.
on_terminal()
{
    line="'$pawl'"
    for word; do line="$line '$word'"; done
    timeout 60 script -qec "$line" /dev/null </dev/null 2>err | tr -d '\r' >out
}

out_is()      { test "$(cat out)" = "$1"; }
out_has()     { grep -qF -e "$1" out; }
out_lacks()   { ! grep -qF -e "$1" out; }
err_has()     { grep -qF -e "$1" err; }
is_empty()    { test ! -s "$1"; }
out_lines()   { test "$(wc -l <out)" -eq "$1"; }

# No byte that a terminal obeys, no byte that is not ASCII.
out_is_tame() { test "$(tr -d '\n -~' <out | wc -c)" -eq 0; }

# Lines of at most so many cells; colours do not count.
out_fits()
{
    longest=$(sed "s/${escape}\[[0-9;]*[mK]//g" out | awk 'length > m { m = length } END { print m + 0 }')
    test "$longest" -le "$1"
}

# json PATH [FILE]: a value out of the JSON in the file.
json()
{
    sqlite3 :memory: "SELECT json_extract(CAST(readfile('${2:-out}') AS TEXT), '$1')" 2>/dev/null
}
json_is()     { test "$(json "$1")" = "$2"; }

# difference PATH PATH: between two numbers in it.
difference()
{
    sqlite3 :memory: "WITH j(j) AS (SELECT CAST(readfile('out') AS TEXT))
        SELECT json_extract(j, '$1') - json_extract(j, '$2') FROM j" 2>/dev/null
}
difference_is() { test "$(difference "$1" "$2")" = "$3"; }

file_is_json() { test "$(sqlite3 :memory: "SELECT json_valid(CAST(readfile('$1') AS TEXT))")" = 1; }

# Every line, or with "whole" all of it, is valid JSON, and there is some.
out_is_json()
{
    test -s out || return 1
    if [ "${1:-}" = whole ]; then
        file_is_json out
        return
    fi
    while IFS= read -r line; do
        printf '%s' "$line" >line
        file_is_json line || return 1
    done <out
}

# ------------------------------------------------------------------------ help, version, usage

expect 2 "no verb" 
check "no verb: help on standard error" err_has "Usage: pawl VERB"
check "no verb: nothing on standard output" is_empty out
expect 2 "an unknown verb" frobnicate
check "an unknown verb is named" err_has "'frobnicate' is not a verb"
run "$(printf 'a\033[2Jb')"
check "an unknown verb is escaped" err_has 'a\x1b[2Jb'

: >here.db
expect 2 "the file before the verb" here.db list
check "the file before the verb: says so" err_has "the verb comes first: pawl list here.db"
rm here.db
mkdir "it's"
expect 2 "a file whose name a shell would obey" "it's" show
check "a file whose name a shell would obey: is quoted" err_has "pawl show 'it'\\''s'"
rmdir "it's"
expect 0 "help" help
check "help lists the verbs" out_has "  requeue "
cp out overview
expect 0 "--help" --help
check "--help is help" cmp -s out overview
expect 0 "-h" -h
expect 2 "help for an unknown verb" help frobnicate
for verb in init enqueue list show stats cancel requeue pause resume version help; do
    expect 0 "help $verb" help "$verb"
    check "help $verb: begins with its usage" out_has "Usage: pawl $verb"
    check "help $verb: fits 80 columns" out_fits 80
    cp out page
    expect 0 "$verb --help" "$verb" --help
    check "$verb --help is help $verb" cmp -s out page
    expect 2 "$verb with an unknown option" "$verb" --frobnicate
    check "$verb with an unknown option: names it" err_has "there is no option --frobnicate"
    check "$verb with an unknown option: shows the usage" err_has "Usage: pawl $verb"
done
for verb in init enqueue list show stats cancel requeue pause resume; do
    expect 2 "$verb without a file" "$verb"
    check "$verb without a file: says so" err_has "FILE is missing"
done

expect 0 "version" version
check "version: one line" out_lines 1
cp out version
expect 0 "--version" --version
check "--version is version" cmp -s out version
expect 0 "version --json" version --json
check "version --json is JSON" out_is_json
check "version --json agrees" test "pawl $(json '$.version')" = "$(cat version)"
expect 2 "version with too much" version jobs.db

# -------------------------------------------------------------------- files that are not there

for verb in list stats "show 1" "cancel 1" "requeue 1" "pause q" "resume q" "enqueue --kind k x"; do
    set -- $verb
    name=$1
    shift
    expect 1 "$name on a missing file" "$name" missing.db "$@"
    check "$name on a missing file: suggests init" err_has "pawl init"
    check "$name on a missing file: creates nothing" test ! -e missing.db
done
echo "not a database, but long enough to be looked at as if it were one" >text
cp text text.before
for verb in init list stats "cancel 1"; do
    set -- $verb
    name=$1
    shift
    expect 1 "$name on a file that is no database" "$name" text "$@"
    check "$name on a file that is no database: names it" err_has "text"
    check "$name on a file that is no database: leaves it alone" cmp -s text text.before
done
: >empty
expect 1 "list on an empty file" list empty
check "list on an empty file: leaves it empty" is_empty empty
sqlite3 app.db 'CREATE TABLE orders(id); INSERT INTO orders VALUES (7); PRAGMA user_version = 42;'
expect 1 "list on a database without jobs" list app.db
expect 1 "enqueue on a database without jobs" enqueue app.db --kind k x
check "nothing was added to it" test "$(sqlite3 app.db 'SELECT count(*) FROM sqlite_schema')" = 1

# -------------------------------------------------------------------------------------- init

expect 0 "init" init jobs.db
check "init: says that it created the file" out_is "jobs.db: created"
check "init: only the owner may read it" test "$(stat -c %a jobs.db)" = 600
expect 0 "init again" init jobs.db
check "init again: says that it is there" out_is "jobs.db: ready for jobs"
expect 0 "init of an application's database" init app.db
check "init leaves the application's tables alone" \
    test "$(sqlite3 app.db 'SELECT id FROM orders; PRAGMA user_version')" = "7
42"
expect 2 "init of two files" init jobs.db app.db
expect 1 "init in a missing directory" init nowhere/jobs.db

expect 0 "list of no jobs" list jobs.db
check "list of no jobs: prints nothing" is_empty out
expect 0 "list --json of no jobs" list jobs.db --json
check "list --json of no jobs: prints nothing" is_empty out
expect 0 "stats of no jobs" stats jobs.db --json
check "stats of no jobs is JSON" out_is_json whole
on_terminal list jobs.db
check "list of no jobs: says so to a person" out_has "No jobs found."

# ----------------------------------------------------------------------------------- enqueue

expect 0 "enqueue" enqueue jobs.db --kind send-email '{"to":"ann"}'
check "enqueue prints the id" out_is 1
check "enqueue: is silent otherwise" is_empty err
expect 0 "enqueue with everything" enqueue --priority -5 --queue mail jobs.db -k send-email \
    --delay 1h30m '{"to":"bob"}' --key bob --max-attempts=3 --timeout 1m500ms
check "enqueue takes its words in any order" out_is 2
POSIXLY_CORRECT=1 run list jobs.db --json
unset POSIXLY_CORRECT
check "words in any order, whatever POSIXLY_CORRECT says" test "$status" -eq 0
check "so the options are taken" out_is_json
POSIXLY_CORRECT=1 run list -- jobs.db --json
unset POSIXLY_CORRECT
check "what stands after -- is no option, whatever it says" err_has "'--json' is one too many"
expect 0 "show" show jobs.db 2 --json
check "the queue is stored" json_is '$.queue' mail
check "a negative priority is stored" json_is '$.priority' -5
check "the attempts are stored" json_is '$.max_attempts' 3
check "the timeout is stored" json_is '$.timeout_ms' 60500
check "the delay is stored" difference_is '$.available_at_ms' '$.created_at_ms' 5400000
check "the key is stored" json_is '$.idempotency_key' bob
check "the payload is stored" json_is '$.payload' '{"to":"bob"}'

expect 0 "enqueue with a key that is taken" enqueue jobs.db --kind send-email --key bob again
check "a key that is taken: prints its id" out_is 2
check "a key that is taken: says so" err_has "nothing was stored"
expect 0 "the same with --json" enqueue jobs.db --kind send-email --key bob again --json
check "a key that is taken: created is false" json_is '$.created' 0
expect 0 "enqueue --json" enqueue jobs.db --kind other --json x
check "enqueue --json: the id" json_is '$.id' 3
check "enqueue --json: created is true" json_is '$.created' 1

expect 0 "enqueue --at" enqueue jobs.db --kind other --at '2040-02-29 12:34:56.789' x
expect 0 "show it" show jobs.db 4
check "--at is a time in UTC" out_has "2040-02-29 12:34:56.789 UTC"
expect 0 "enqueue an empty payload" enqueue jobs.db --kind other ''
expect 0 "show it" show jobs.db 5 --json
check "an empty payload is an empty string" json_is '$.payload' ''
printf 'from a file\n' >payload
expect 0 "enqueue --file" enqueue jobs.db --kind other --file payload
timeout 60 "$pawl" enqueue jobs.db --kind other - <payload >out 2>err
check "enqueue from standard input" out_is 7
head -c 1048576 /dev/zero | tr '\0' x >mega
timeout 60 "$pawl" enqueue jobs.db --kind other - <mega >out 2>err
check "a payload of 1 MiB is stored" out_is 8
echo x >>mega
timeout 60 "$pawl" enqueue jobs.db --kind other - <mega >out 2>err
check "a payload of 1 MiB and a byte is refused" test $? -eq 1
check "a payload that is too large: the message says the limit" err_has 1048576
check "it names no option that the command does not have" sh -c '! grep -q "or raise" err'
check "it says what to do" err_has "enqueue a reference"
expect 1 "enqueue of a file that is not there" enqueue jobs.db --kind other --file nowhere
check "a file that is not there: is named" err_has nowhere
expect 1 "enqueue of a directory" enqueue jobs.db --kind other --file .
expect 0 "enqueue after --" enqueue jobs.db --kind other -- --file
expect 0 "show it" show jobs.db 9 --payload
check "-- ends the options" out_is --file

expect 2 "enqueue without a kind" enqueue jobs.db x
expect 2 "enqueue without a payload" enqueue jobs.db --kind other
check "enqueue without a payload: says how" err_has "--file PATH"
expect 2 "enqueue of two payloads" enqueue jobs.db --kind other x y
expect 2 "enqueue of a payload and a file" enqueue jobs.db --kind other x --file payload
expect 2 "enqueue with a delay and a time" enqueue jobs.db --kind other x --delay 1s --at 2040-01-01
for number in x 1x '' ' 1' +1 1.5 0x10 2147483648 -2147483649 99999999999999999999; do
    expect 2 "enqueue --priority '$number'" enqueue jobs.db --kind other x --priority "$number"
    check "it names the option and the range" err_has \
        "--priority: '$number' is not a whole number from -2147483648 to 2147483647"
done
expect 2 "enqueue --max-attempts 0" enqueue jobs.db --kind other x --max-attempts 0
for duration in 10 s 1y -1s '1 s' 1s1m 1m1m 1.5h 9223372036854775807d 99999999999999999999ms; do
    expect 2 "enqueue --delay '$duration'" enqueue jobs.db --kind other x --delay "$duration"
    check "it names the option" err_has "--delay: '$duration'"
done
for time in 2040 2040-13-01 2039-02-29 '2040-01-01 24:00' '2040-01-01 1:00' 1969-12-31 '2040-01-01 '; do
    expect 2 "enqueue --at '$time'" enqueue jobs.db --kind other x --at "$time"
done
expect 2 "enqueue --timeout 0" enqueue jobs.db --kind other x --timeout 0
expect 2 "enqueue with an empty key" enqueue jobs.db --kind other x --key ''
expect 2 "an option without its value" enqueue jobs.db x --kind
check "an option without its value: says so" err_has "--kind needs a value"
expect 2 "a value without its option" list jobs.db --json=yes
check "a value without its option: says so" err_has "--json takes no value"
expect 2 "an empty kind" enqueue jobs.db --kind '' x
check "an empty kind: says so" err_has "--kind: the name is empty"
expect 2 "an empty queue" enqueue jobs.db --kind k --queue '' x
check "an empty queue: says so" err_has "--queue: the name is empty"
run list jobs.db --json
check "what was refused is not stored" out_lines 9

# ------------------------------------------------------------------------------------- list

expect 0 "list" list jobs.db
check "list: a title and a line for each job" out_lines 10
check "list: the titles" grep -q '^ *ID  STATUS  *QUEUE  *KIND  *PRIO  *ATTEMPTS  *TIME (UTC)' out
check "list: no line ends in spaces" test "$(grep -c ' $' out)" -eq 0
check "list: no colours in a file" out_lacks "$escape"
expect 0 "list --json" list jobs.db --json
check "list --json is JSON Lines" out_is_json
expect 0 "list --queue" list --queue mail jobs.db
check "list --queue: one job" out_lines 2
expect 0 "list --kind" list jobs.db --kind send-email
check "list --kind: two jobs" out_lines 3
expect 0 "list --status" list jobs.db -s failed,pending --json
check "list --status: all jobs" out_lines 9
expect 0 "list --status of none" list jobs.db --status running
check "list --status of none: nothing" is_empty out
expect 0 "list --limit --newest" list jobs.db --limit 2 --newest --json
check "list --limit: two jobs" out_lines 2
head -n 1 out >line
check "list --newest: the newest first" test "$(json '$.id' line)" = 9
expect 2 "list --status of a word unknown" list jobs.db --status pending,lost
check "list --status of a word unknown: names it" err_has "'lost'"
expect 2 "list --status of nothing" list jobs.db --status ''
expect 2 "list --limit 0" list jobs.db --limit 0
expect 2 "list of two files" list jobs.db app.db

# ------------------------------------------------------------------------------------- show

expect 0 "show" show jobs.db 2
check "show: the priority" grep -q '^priority  *-5$' out
check "show: the timeout" grep -q '^timeout  *1m500ms$' out
check "show: when it is due" grep -q '^available at  *....-..-.. ..:..:..\.... UTC  (in 1h2.m)$' out
check "show: the payload" grep -qF '{"to":"bob"}' out
expect 0 "show --json" show jobs.db 2 --json
check "show --json is JSON" out_is_json whole
expect 0 "show --payload" show jobs.db 6 --payload
check "show --payload: the exact bytes" cmp -s out payload
expect 1 "show of a job that is not there" show jobs.db 4711
check "show of a job that is not there: names it" err_has "has no job 4711"
expect 1 "show --json of a job that is not there" show jobs.db 4711 --json
check "show --json of it: the error" test "$(json '$.error')" = PAWL_ERR_NOT_FOUND
expect 1 "explain --json of a job that is not there" explain jobs.db 4711 --json
check "explain --json of it: the id" json_is '$.id' 4711
check "explain --json of it: the error" test "$(json '$.error')" = PAWL_ERR_NOT_FOUND
check "explain --json of it: no text" json_is '$.text' ''
check "explain of it: the same words" err_has "has no job 4711"
for id in 0 -- -1 x 1x 9223372036854775808; do
    expect 2 "show $id" show jobs.db "$id"
done
expect 2 "show without an id" show jobs.db
expect 2 "show of two ids" show jobs.db 1 2

# ---------------------------------------------------------------------------- hostile bytes

printf 'red \033[31m nul \000 bad \377 bidi \342\200\256 c1 \302\233 line\nend' >hostile
expect 0 "init for hostile bytes" init hostile.db
expect 0 "enqueue hostile bytes" enqueue hostile.db --file hostile \
    --kind "$(printf 'k\342\200\256k')" --key "$(printf 'key\377')"
expect 0 "show hostile bytes" show hostile.db 1
check "show: control bytes are escaped" out_has \
    'red \x1b[31m nul \x00 bad \xff bidi \u{202e} c1 \u{9b} line\nend'
check "show: a hostile kind is escaped" grep -q '^kind  *k\\u{202e}k$' out
check "show: a hostile key is escaped" grep -q '^key  *key\\xff$' out
check "show: nothing that a terminal obeys" out_is_tame
expect 0 "list hostile bytes" list hostile.db --payload
check "list: one line" out_lines 2
check "list: nothing that a terminal obeys" out_is_tame
expect 0 "list hostile bytes as JSON" list hostile.db --json
check "JSON of hostile bytes is JSON" out_is_json
check "bytes that are no text are base64" json_is '$.payload_base64' "$(base64 -w 0 hostile)"
check "so is a key" json_is '$.idempotency_key_base64' "$(printf 'key\377' | base64)"
check "they are there once" json_is '$.payload' ''
on_terminal list hostile.db --json
check "JSON on a terminal: nothing that it obeys" out_is_tame
on_terminal show hostile.db 1 --payload
check "a payload on a terminal: nothing that it obeys" out_is_tame
expect 0 "show --payload of hostile bytes" show hostile.db 1 --payload
check "a payload in a file: the exact bytes" cmp -s out hostile
printf 'gr\303\274\303\237e' >text.utf8
expect 0 "enqueue text" enqueue hostile.db --file text.utf8 --kind greet
expect 0 "show text" show hostile.db 2
check "text stays text" out_has "$(cat text.utf8)"
expect 0 "show text as JSON" show hostile.db 2 --json
check "text is a string in JSON" json_is '$.payload' "$(cat text.utf8)"

printf 'soft\302\255hyphen vowel\341\240\216separator filler\343\205\244 end' >hidden
expect 0 "enqueue text that hides" enqueue hostile.db --file hidden --kind greet
expect 0 "show it" show hostile.db 3
check "characters that are not seen are shown" out_has 'soft\u{ad}hyphen vowel\u{180e}separator filler\u{3164} end'
expect 0 "list it" list hostile.db --payload --newest --limit 1
check "in a list as well" out_has 'soft\u{ad}hyphen'

# --------------------------------------------------------------------------------- terminal

COLUMNS=60 NO_COLOR=1 on_terminal list jobs.db --payload
check "list on a terminal: cut to its width" out_fits 60
check "list on a terminal: as many lines" out_lines 10
check "list on a terminal: NO_COLOR" out_lacks "$escape"
COLUMNS=200 on_terminal list jobs.db
check "list on a wide terminal: nothing is cut" out_lacks ...
check "list on a terminal: colours" out_has "${escape}[1m"
COLUMNS=60 NO_COLOR=1 on_terminal stats jobs.db
check "stats on a terminal: cut to its width" out_fits 60
COLUMNS=60 NO_COLOR=1 on_terminal show jobs.db 8
check "show on a terminal: cut to its width" out_fits 60
COLUMNS=60 run list jobs.db
check "list into a file: COLUMNS does not cut it" grep -q '2040-02-29 12:34:56.789' out

# ------------------------------------------------------------------------------------ stats

expect 0 "stats" stats jobs.db
check "stats: a title, three lanes and a total" out_lines 5
check "stats: a lane" grep -q '^mail  *send-email  *0  *-  *1  *0 ' out
check "stats: the total" grep -q '^total  *7 ' out
expect 0 "stats --json" stats jobs.db --json
check "stats --json is JSON" out_is_json whole
check "stats --json: due" json_is '$.total.pending_due' 7
check "stats --json: later" json_is '$.total.pending_later' 2
check "stats --json: enqueued" json_is '$.total.enqueued' 9
check "stats --json: the lanes" json_is '$.lanes[2].queue' mail
check "stats --json: the oldest" test "$(json '$.lanes[1].oldest_due_age_ms')" -ge 0

# -------------------------------------------------------------------------- pause and resume

expect 0 "pause" pause jobs.db mail default
check "pause is silent" is_empty out
run stats jobs.db --json
check "pause: the lane is paused" json_is '$.lanes[2].paused' 1
run stats jobs.db
check "pause: the table says so" grep -q '^mail .* paused$' out
expect 0 "pause again" pause jobs.db mail
expect 0 "resume" resume jobs.db mail default
run stats jobs.db --json
check "resume: no lane is paused" json_is '$.lanes[2].paused' 0
expect 0 "pause of a queue without jobs" pause jobs.db mial
check "pause of a queue without jobs: says so" err_has "queue 'mial' has never had a job"
expect 2 "pause of nothing" pause jobs.db
expect 2 "pause of an empty name" pause jobs.db ''

# ------------------------------------------------------------------------- cancel and requeue

expect 0 "cancel" cancel jobs.db 1
check "cancel: says what became of it" out_is "1 cancelled"
run show jobs.db 1 --json
check "cancel: the job is cancelled" json_is '$.status' cancelled
expect 0 "cancel again" cancel jobs.db 1
expect 2 "cancel with the file in the wrong place" cancel 2 jobs.db
expect 1 "cancel with one id that is not there" cancel jobs.db 2 4711 3
check "cancel: the others are cancelled" out_is "2 cancelled
3 cancelled"
check "cancel: the one is named" err_has "jobs.db: has no job 4711"
expect 1 "cancel --json" cancel jobs.db --json 3 4712
check "cancel --json is JSON Lines" out_is_json
check "cancel --json: a line for each" out_lines 2
tail -n 1 out >line
check "cancel --json: the error" test "$(json '$.error' line)" = PAWL_ERR_NOT_FOUND
expect 2 "cancel with an id that is none" cancel jobs.db 5 x
run show jobs.db 5 --json
check "then nothing was cancelled" json_is '$.status' pending
expect 2 "cancel of nothing" cancel jobs.db
expect 2 "cancel with a filter, without --all" cancel jobs.db --kind other
check "cancel with a filter, without --all: says so" err_has "--all"
expect 2 "cancel with ids and --all" cancel jobs.db --all 5
expect 2 "cancel with ids and a filter" cancel jobs.db 5 --kind other
expect 2 "cancel of jobs that have ended" cancel jobs.db --all --status failed
run list jobs.db --status cancelled --json
check "refused commands cancelled nothing" out_lines 3

expect 0 "requeue" requeue jobs.db 1
check "requeue: says what became of it" out_is "1 requeued"
run show jobs.db 1 --json
check "requeue: the job is pending" json_is '$.status' pending
expect 1 "requeue of a pending job" requeue jobs.db 1
check "requeue of a pending job: says why not" err_has "job 1: only a failed or cancelled job"
expect 0 "requeue --all" requeue jobs.db --all
check "requeue --all: not the cancelled ones" out_is "0 requeued"
check "requeue --all: says so" err_has "--status"
expect 2 "requeue without --all" requeue jobs.db --status failed
expect 2 "requeue of pending jobs" requeue jobs.db --all --status pending
expect 0 "requeue --all --status cancelled" requeue jobs.db --all --status cancelled
check "requeue --all --status cancelled: all of them" out_is "2 requeued"

expect 0 "cancel --all with filters" cancel jobs.db --all --kind other --queue default
check "cancel --all with filters: those alone" out_is "7 cancelled"
expect 0 "cancel --all" cancel --all jobs.db --json
check "cancel --all --json is JSON Lines" out_is_json
check "cancel --all --json: a line for each" out_lines 2
expect 0 "cancel --all of none" cancel jobs.db --all
check "cancel --all of none" out_is "0 cancelled"

# --------------------------------------------------------------------- more jobs than a page

expect 0 "init for many" init many.db
count=0
while [ $count -lt 140 ]; do
    "$pawl" enqueue many.db --kind bulk $count >>ids 2>>err || break
    count=$((count + 1))
done
check "140 jobs are stored" test "$(sort -un ids | wc -l)" -eq 140
expect 0 "list of many" list many.db
check "list of many: all of them" out_lines 141
check "list of many: one title" test "$(grep -c STATUS out)" -eq 1
expect 0 "list of many, newest first" list many.db --newest --limit 130 --json
check "list of many: the limit" out_lines 130
tail -n 1 out >line
check "list of many: in order" test "$(json '$.id' line)" = 11
expect 0 "cancel of many" cancel many.db --all
check "cancel of many: all of them" out_is "140 cancelled"
expect 0 "requeue of many" requeue many.db --all --status cancelled
check "requeue of many: all of them" out_is "140 requeued"
expect 0 "cancel of many ids" cancel many.db $(cat ids)
check "cancel of many ids: a line for each" out_lines 140

# ------------------------------------------------------------------- reading changes nothing

listing() { find . -type f ! -name out ! -name err ! -name 'listing.*' -printf '%p %s %m %i %T@ %C@\n' | sort; }
digest() { sha256sum jobs.db hostile.db many.db; }
listing >listing.before
before=$(digest)
run list jobs.db
run list many.db --json
run show jobs.db 1
run stats jobs.db
run stats hostile.db --json
run show jobs.db 4711
listing >listing.after
check "reading: no byte of a database changes" test "$before" = "$(digest)"
check "reading: no file is created, removed or touched" cmp -s listing.before listing.after

# ----------------------------------------------------------------- where the output does not go

timeout 60 "$pawl" list jobs.db >/dev/full 2>err
check "a full standard output: exit 1" test $? -eq 1
check "a full standard output: says so" err_has "standard output"
timeout 60 "$pawl" list jobs.db >&- 2>err
check "a closed standard output: exit 1" test $? -eq 1
timeout 60 "$pawl" list many.db --json >/dev/full 2>err
check "a full standard output in a long list: exit 1" test $? -eq 1
timeout 60 "$pawl" help >/dev/full 2>err
check "a full standard output for the help: exit 1" test $? -eq 1
timeout 60 "$pawl" pause jobs.db mail <&- >&- 2>&-
check "pause with all three descriptors closed: exit 0" test $? -eq 0
timeout 60 "$pawl" enqueue jobs.db --kind other x <&- 2>&- >out
check "enqueue without standard error: the id" out_is 10
timeout 60 "$pawl" show jobs.db 4711 >out 2>&-
check "a message that nobody can read: exit 1" test $? -eq 1
timeout 60 "$pawl" enqueue jobs.db --kind other - <&- >out 2>err
check "a payload from a closed standard input: exit 1" test $? -eq 1
timeout 60 "$pawl" list many.db | head -n 1 >out
check "a reader that leaves early" out_has STATUS
check "the database is whole" test "$(sqlite3 jobs.db 'PRAGMA integrity_check')" = ok

printf '# %d passed, %d failed\n' "$passed" "$failed"
[ "$failed" -eq 0 ]
