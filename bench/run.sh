#!/bin/sh
# Builds pawl-bench, installing what is missing, and measures: sh bench/run.sh [--quick] [--normal] [--only NAME]
set -eu
root=$(CDPATH= cd -- "$(dirname -- "$0")/.." && pwd)
. "$root/.setup/setup.sh"
setup build
build release -DPAWL_TESTS=OFF -DPAWL_BENCH=ON
exec "$root/.build/release/bench/pawl-bench" "$@"
