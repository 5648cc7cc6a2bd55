#!/usr/bin/env bash
# addresses_test.sh PROGRAM...: without libdw, addr2line finds the functions of a dump, however a program is linked.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
: >"$work/libdw.so.1"  # what the loader finds first, and cannot open

fail() {
  echo "FAILED: $*" >&2
  exit 1
}

for program; do
  dump=$(LD_LIBRARY_PATH=$work "$program") || fail "$program ended with exit code $?"
  [[ $dump == "goroutine 1 [running]:"* ]] || fail "$program printed $dump"
  [[ $dump != *addresses_subject.cpp* ]] || fail "$program had libdw after all: $dump"
  mapfile -t addresses < <(grep -oP "${program##*/}\+\K0x[0-9a-f]+" <<<"$dump")
  functions=$(addr2line -f -e "$program" "${addresses[@]}")
  [[ $functions == *dump_from_here* ]] || fail "$program: addr2line does not know dump_from_here: $dump"$'\n'"$functions"
  echo "ok: ${program##*/}"
done
