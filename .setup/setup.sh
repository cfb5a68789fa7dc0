# setup.sh - sourced by handlers/run.sh and tests/run.sh (POSIX sh): installs what is missing and
# builds a preset. Expects $root, the top of the source tree. Works again and again; with every
# package present it needs neither root nor a network.

say()  { printf '%s\n' "$*"; }
fail() { printf '%s\n' "$*" >&2; exit 1; }

# packages_for USE...: the packages that are listed for one of the uses.
packages_for()
{
    for use; do
        sed -n "s/^\([^# ][^ ]*\)  *$use\$/\1/p" "$root/.setup/packages"
    done
}

# packages_missing PACKAGE...
packages_missing()
{
    for package; do
        state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) || state=none
        [ "$state" = installed ] || printf '%s ' "$package"
    done
}

# as_root COMMAND...: only where that is possible without asking for a password.
as_root()
{
    if [ "$(id -u)" = 0 ]; then
        "$@"
    else
        sudo -n "$@"
    fi
}

can_be_root()
{
    [ "$(id -u)" = 0 ] || { command -v sudo && sudo -n true; } >/dev/null 2>&1
}

apt()
{
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=300 \
        -o Dpkg::Use-Pty=0 "$@" </dev/null
}

# A machine's package lists may be missing or stale: they are fetched where an install fails.
apt_install()
{
    apt install --no-install-recommends "$@" || { apt update && apt install --no-install-recommends "$@"; }
}

# setup USE...: all packages for the uses are there afterwards.
setup()
{
    if ! command -v dpkg-query >/dev/null; then
        say "setup: not a Debian machine; expecting the like of:" $(packages_for "$@")
        return
    fi
    missing=$(packages_missing $(packages_for "$@"))
    if [ -z "$missing" ]; then
        say "setup: every package is present"
        return
    fi
    can_be_root || fail "setup: these packages are missing, and installing them needs root. Run:
    apt-get update && apt-get install --no-install-recommends $missing"
    mkdir -p "$root/.build"
    log=$root/.build/setup.log
    say "setup: installing $missing"
    apt_install $missing >"$log" 2>&1 || { tail -n 20 "$log" >&2; fail "setup: apt-get failed; see $log"; }
}

# setup_if_possible USE...: the same for packages that a machine may refuse (its node may not be Debian's); what
# needs them says that it is skipped.
setup_if_possible()
{
    [ -z "$(packages_missing $(packages_for "$@"))" ] || (setup "$@") || say "setup: going on without them"
}

# build PRESET [CMAKE OPTION]...: configures and builds .build/PRESET. A build tree that came from
# elsewhere, or from another CMake, is configured afresh.
build()
{
    preset=$1
    shift
    if command -v ccache >/dev/null; then
        export CMAKE_C_COMPILER_LAUNCHER=ccache CMAKE_CXX_COMPILER_LAUNCHER=ccache
        # Its cache is in the home directory, if there is one.
        [ -w "${HOME:-/nonexistent}" ] || export CCACHE_DIR="$root/.build/ccache"
    fi
    mkdir -p "$root/.build"
    log=$root/.build/$preset.log
    (
        cd "$root"
        cmake --preset "$preset" "$@" || cmake --fresh --preset "$preset" "$@"
    ) >"$log" 2>&1 || { tail -n 30 "$log" >&2; say "build: configuring $preset failed; see $log" >&2; return 1; }
    cmake --build "$root/.build/$preset" >>"$log" 2>&1 ||
        { tail -n 60 "$log" >&2; say "build: $preset failed; see $log" >&2; return 1; }
}
