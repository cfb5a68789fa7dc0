#!/bin/sh
# install_test.sh BUILD_DIR CC CXX - what is installed can be used, and offers no more than it says.
#
# Goals: the shared library exports exactly the functions that the header declares; the header alone is
# strict C11 and C++17; an application builds and runs with pkg-config and with find_package, shared
# and static, in C and in C++; installed commands find their library; the prefix can be moved.
set -eu
build=$1
CC=$2
CXX=$3
export CC CXX
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

die() { printf 'install_test: %s\n' "$*" >&2; exit 1; }
ok()  { printf 'ok: %s\n' "$*"; }

# quietly COMMAND...: its output only matters if it fails.
quietly()
{
    "$@" >"$work/log" 2>&1 || { cat "$work/log" >&2; die "failed: $*"; }
}

# runs PROGRAM: with a new database each time.
runs()
{
    rm -rf "$work/db"
    mkdir "$work/db"
    quietly "$1" "$work/db/jobs.db"
}

quietly cmake --install "$build" --prefix "$work/first"
mv "$work/first" "$work/prefix"
prefix=$work/prefix
pc_dir=$(dirname "$(find "$prefix" -name pawl.pc)")
lib_dir=$(dirname "$pc_dir")
header=$prefix/include/pawl/pawl.h

# ------------------------------------------------------------------------------------- symbols
declared()
{
    tr '\n' ' ' <"$header" | sed 's,/\*[^*]*\**\([^/*][^*]*\*\**\)*/, ,g' | tr ';' '\n' |
        sed -n 's/.*PAWL_API [^(]*[ *]\(pawl_[a-z_]*\)(.*/\1/p' | sort
}
declared >"$work/declared"
[ "$(wc -l <"$work/declared")" -gt 40 ] || die "cannot find the functions in the header"
nm -D --defined-only "$lib_dir/libpawl.so" | awk '{ print $3 }' | sort >"$work/exported"
diff "$work/declared" "$work/exported" >&2 || die "declared (<) and exported (>) differ"
ok "the shared library exports exactly the $(wc -l <"$work/declared") declared functions"

# -------------------------------------------------------------------------------------- header
echo '#include <pawl/pawl.h>' >"$work/header.c"
cp "$work/header.c" "$work/header.cpp"
strict="-Wall -Wextra -pedantic-errors -Werror -fsyntax-only -I$prefix/include"
quietly "$CC" -std=c11 $strict "$work/header.c"
quietly "$CXX" -std=c++17 $strict "$work/header.cpp"
! grep -Eq '# *include *[<"](sqlite3|uv)\.h' "$header" || die "the header includes another library's"
ok "the header alone is strict C11 and C++17"

# ---------------------------------------------------------------------------------- pkg-config
PKG_CONFIG_PATH=$pc_dir
export PKG_CONFIG_PATH
quietly "$CC" -std=c11 -Wall -Wextra -Wpedantic -Werror -o "$work/shared" \
    "$here/installed/consumer.c" $(pkg-config --cflags --libs pawl) "-Wl,-rpath,$lib_dir"
runs "$work/shared"
quietly "$CXX" -std=c++17 -Wall -Wpedantic -Werror -o "$work/cpp" \
    "$here/installed/consumer.cpp" $(pkg-config --cflags --libs pawl) "-Wl,-rpath,$lib_dir"
runs "$work/cpp"
ok "pkg-config: C and C++ with the shared library"

cp -R "$prefix" "$work/static-prefix"
static_dir=$work/static-prefix/${lib_dir#"$prefix"/}
rm "$static_dir"/libpawl.so*
PKG_CONFIG_PATH=$static_dir/pkgconfig
quietly "$CC" -std=c11 -o "$work/static" "$here/installed/consumer.c" \
    $(pkg-config --static --cflags --libs pawl)
! ldd "$work/static" | grep -q libpawl || die "the static program needs the shared library"
runs "$work/static"
ok "pkg-config --static: C with the static library"

# -------------------------------------------------------------------------------- find_package
quietly cmake -S "$here/installed" -B "$work/build" -G Ninja "-DCMAKE_PREFIX_PATH=$prefix"
quietly cmake --build "$work/build"
for program in consumer_shared consumer_static consumer_cpp; do
    runs "$work/build/$program"
done
ok "find_package: C and C++, shared and static"

# ------------------------------------------------------------------------------------ commands
quietly "$prefix/bin/pawl" version
ok "the installed command finds its library"
[ ! -e "$prefix/bin/pawl-ingest" ] || die "the sample was installed, and nobody has asked for it"
ok "the sample is not installed"
