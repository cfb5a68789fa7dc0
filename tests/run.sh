#!/bin/sh
# Builds and tests everything, installing what is missing, and ends with one summary.
#
#   sh tests/run.sh [STAGE]...      default: every stage, in this order
#
#   dev      gcc, warnings are errors: every test
#   asan     AddressSanitizer and UndefinedBehaviorSanitizer: unit and integration tests
#   tsan     ThreadSanitizer: unit, integration and stress tests
#   clang    clang, warnings are errors: builds
#   release  optimised and hardened, warnings are errors: builds
#   lint     clang-tidy and cppcheck find nothing
#
# A stage that fails does not stop the next ones. Exit status: 0 if every stage passed.
set -u
root=$(CDPATH= cd -- "$(dirname -- "$0")/.." && pwd)
. "$root/.setup/setup.sh"

stages="dev asan tsan clang release lint"
summary=""
failed=0
start=$(date +%s)

# Some kernels place memory where a sanitizer of that age wants its shadow: then a program that does
# nothing dies at its start, now and then, unless addresses are not randomised.
sanitizer_runner()
{
    probe=$root/.build/probe-$1
    echo 'int main(void) { return 0; }' >"$probe.c"
    gcc "-fsanitize=$1" -o "$probe" "$probe.c" || return
    for run in 1 2 3 4 5 6 7 8 9 10; do
        "$probe" >/dev/null 2>&1 || { echo "setarch -R"; return; }
    done
}

# test_preset PRESET LABELS [RUNNER]...: ctest's output is shown, and kept for the summary.
test_preset()
{
    preset=$1
    labels=$2
    shift 2
    log=$root/.build/$preset-tests.log
    {
        "$@" ctest --test-dir "$root/.build/$preset" --output-on-failure --no-tests=error \
            --parallel 2 --label-regex "$labels"
        echo $? >"$log.status"
    } 2>&1 | tee "$log"
    [ "$(cat "$log.status")" = 0 ]
}

strict=-DCMAKE_COMPILE_WARNING_AS_ERROR=ON

stage_dev()
{
    build dev "$strict" && test_preset dev .
}

stage_asan()
{
    build asan "$strict" &&
        test_preset asan '^(unit|integration)$' $(sanitizer_runner address)
}

stage_tsan()
{
    build tsan "$strict" &&
        test_preset tsan '^(unit|integration|stress)$' $(sanitizer_runner thread)
}

stage_clang()
{
    build clang "$strict"
}

stage_release()
{
    build release "$strict" -DPAWL_TESTS=OFF -DPAWL_BENCH=OFF
}

stage_lint()
{
    sh "$root/tests/lint.sh"
}

# counts STAGE: "12 tests passed" or "3 of 12 tests failed", from ctest's closing line.
counts()
{
    sed -n 's/^[0-9]*% tests passed, \([0-9]*\) tests failed out of \([0-9]*\)$/\1 of \2 tests failed/p' \
        "$root/.build/$1-tests.log" 2>/dev/null | sed 's/^0 of \(.*\) failed/\1 passed/'
}

run_stage()
{
    began=$(date +%s)
    printf '\n==== %s\n' "$1"
    rm -f "$root/.build/$1-tests.log"
    if "stage_$1"; then
        result=passed
    else
        result=FAILED
        failed=$((failed + 1))
    fi
    line=$(printf '%-8s %-7s %4d s  %s' "$1" "$result" $(($(date +%s) - began)) "$(counts "$1")")
    summary="$summary$line
"
}

for stage in ${*:-$stages}; do
    case " $stages " in
    *" $stage "*) ;;
    *) fail "tests/run.sh: no stage \"$stage\"; there are: $stages" ;;
    esac
done

setup build tests
setup_if_possible clients
mkdir -p "$root/.build"
for stage in ${*:-$stages}; do
    run_stage "$stage"
done

printf '\n==== summary: %s s in all\n%s' "$(($(date +%s) - start))" "$summary"
[ "$failed" = 0 ] || fail "$failed of the stages failed"
say "everything passed"
