#!/bin/sh
# Asks clang-tidy (.clang-tidy) and cppcheck (.cppcheck) about every file of ours that is compiled.
#
#   sh tests/lint.sh [BUILD]   BUILD: a configured build tree with a compile_commands.json; default: one of
#                              its own, .build/lint
#
# Findings are printed as they come, then one summary. Exit status: 0 if there are none. A finding is mended;
# where the tool is wrong, the line says NOLINT(check) or cppcheck-suppress, and why.
set -u
root=$(CDPATH= cd -- "$(dirname -- "$0")/.." && pwd)
work=$root/.build/lint
tree=${1:-$work/tree}
mkdir -p "$work" || exit 2

if [ $# = 0 ]; then
    (cd "$root" && cmake --preset dev -B "$tree") >"$work/configure.log" 2>&1 ||
        { tail -n 30 "$work/configure.log" >&2; exit 2; }
fi

# A file that several programs are made of is looked at once.
awk '/^{/ { entry = ""; file = "" }
     { entry = entry $0 "\n" }
     /^ *"file":/ { file = $2 }
     /^}/ { if (!(file in seen)) { seen[file]; sub(/}.*/, "}", entry); printf "%s%s", (n++ ? ",\n" : "[\n"), entry } }
     END { print "\n]" }' "$tree/compile_commands.json" >"$work/compile_commands.json" || exit 2
sed -n 's/^ *"file": "\(.*\)",*$/\1/p' "$work/compile_commands.json" >"$work/files"
[ -s "$work/files" ] || { echo "tests/lint.sh: $tree/compile_commands.json names no files" >&2; exit 2; }

cd "$root" || exit 2
began=$(date +%s)

# findings NAME COMMAND...: runs it, shows what it finds by paths from the top, and counts it. A tool that
# fails without a finding is a finding too.
findings()
{
    name=$1
    shift
    status=passed
    "$@" >"$work/$name.out" 2>"$work/$name.err" || status=failed
    count=$(grep -cE '^/.*: (warning|error|style|performance|portability): ' "$work/$name.out")
    sed "s#$root/##g" "$work/$name.out"
    if [ "$status" = failed ] && [ "$count" = 0 ]; then
        tail -n 20 "$work/$name.err"
        count=1
    fi
    summary="$summary$(printf '%-11s %d findings' "$name" "$count")
"
    total=$((total + count))
}

# One process for each file: with several, some of its checks remember the file before.
tidy()
{
    xargs -P 2 -n 1 clang-tidy --quiet -p "$work" <"$work/files"
}

check()
{
    cppcheck --project="$work/compile_commands.json" -j 2 --quiet --error-exitcode=1 --inline-suppr \
        --enable=warning,performance,portability,style --library=posix,gnu,sqlite3 \
        --suppressions-list=.cppcheck --template='{file}:{line}:{column}: {severity}: {message} [{id}]' 2>&1
}

summary=""
total=0
findings clang-tidy tidy
findings cppcheck check
printf 'lint: %d files, %d s\n%s' "$(wc -l <"$work/files")" "$(($(date +%s) - began))" "$summary"
[ "$total" = 0 ]
