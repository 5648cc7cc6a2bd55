#!/usr/bin/env bash
# install_test.sh BUILD_DIR CMAKE CXX LIBDIR VERSION
# Installs the build tree into a temporary prefix, moves that prefix elsewhere (an installed tree may be moved), and
# builds and runs the consumer through find_package and through pkg-config, with the static and the shared library. gdb, if
# there is one, has its commands for goroutines by itself.
set -euo pipefail

build_dir=$1 cmake=$2 cxx=$3 libdir=$4 version=$5
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
  echo "FAILED: $*" >&2
  exit 1
}

# expect_linkage PROGRAM static|shared
expect_linkage() {
  local found=static
  if [[ $(readelf -d "$1") =~ NEEDED[^$'\n']*libweft\.so ]]; then found=shared; fi
  [[ $found == "$2" ]] || fail "$1 is linked to the $found library, expected the $2 one"
}

# run_consumer PROGRAM static|shared
run_consumer() {
  expect_linkage "$1" "$2"
  local output
  output=$(LD_LIBRARY_PATH=$prefix/$libdir "$1") || fail "$1 ended with exit code $?"
  [[ $output == "weft $version: 42" ]] || fail "$1 printed '$output'"
  expect_gdb_commands "$1"
  echo "ok: ${1#"$work"/}"
}

# expect_gdb_commands PROGRAM: gdb trusts what was installed and built here, and is not told where its script is.
expect_gdb_commands() {
  [[ -n $(type -P gdb) ]] || return 0
  local output
  output=$(LD_LIBRARY_PATH=$prefix/$libdir gdb -q -nx -batch -iex "set debuginfod enabled off" -iex "set auto-load safe-path $work" \
    -ex "break main" -ex run -ex "help info goroutines" "$1" 2>&1) || true
  [[ $output == *"Lists all goroutines"* ]] || fail "gdb has no commands for the goroutines of $1: $output"
}

"$cmake" --install "$build_dir" --prefix "$work/first" >"$work/install.log" || { cat "$work/install.log"; exit 1; }
prefix=$work/moved
mv "$work/first" "$prefix"

# find_package: the three targets, and weft::weft flipped by the consumer.
"$cmake" -S "$here/consumer" -B "$work/cmake" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_CXX_COMPILER="$cxx" \
  -DWEFT_EXPECTED_VERSION="$version" >"$work/configure.log" || { cat "$work/configure.log"; exit 1; }
"$cmake" --build "$work/cmake" >"$work/build.log" || { cat "$work/build.log"; exit 1; }
run_consumer "$work/cmake/with_static" static
run_consumer "$work/cmake/with_shared" shared
"$cmake" -S "$here/consumer" -B "$work/cmake" -DWEFT_PREFER_SHARED=OFF >/dev/null
"$cmake" --build "$work/cmake" --target with_default >/dev/null
run_consumer "$work/cmake/with_default" static
"$cmake" -S "$here/consumer" -B "$work/cmake" -DWEFT_PREFER_SHARED=ON >/dev/null
"$cmake" --build "$work/cmake" --target with_default >/dev/null
run_consumer "$work/cmake/with_default" shared

# pkg-config: -lweft takes the shared library; the static one is asked for by its file name.
export PKG_CONFIG_PATH=$prefix/$libdir/pkgconfig
[[ $(pkg-config --modversion weft) == "$version" ]] || fail "weft.pc has version $(pkg-config --modversion weft)"
read -ra cflags <<<"$(pkg-config --cflags weft)"
read -ra libs <<<"$(pkg-config --libs --static weft)"
"$cxx" -std=c++20 "${cflags[@]}" -c "$here/consumer/main.cpp" -o "$work/main.o"
"$cxx" "$work/main.o" -o "$work/pkg_config_shared" "${libs[@]}"
run_consumer "$work/pkg_config_shared" shared
"$cxx" "$work/main.o" -o "$work/pkg_config_static" "${libs[@]/#-lweft/-l:libweft.a}"
run_consumer "$work/pkg_config_static" static
