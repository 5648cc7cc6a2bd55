#!/usr/bin/env bash
# What the benchmark programs and bench/run do with arguments that they do not understand: nothing but say so. No line here
# measures anything, also if bench/run fails to refuse (--list ends it). Usage: arguments_test.sh VERSUS_WEFT NET_LOAD
set -euo pipefail
versus=$1 load=$2
run=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/run

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# expect CODE out|err TEXT PROGRAM ARGUMENT...: it ends with that code and says the text there, with no traceback.
expect() {
  local code=$1 where=$2 text=$3 found=0
  shift 3
  timeout 60 "$@" >"$work/out" 2>"$work/err" || found=$?
  if ((found != code)) || [[ $(<"$work/$where") != *"$text"* ]] || grep -q Traceback "$work/err"; then
    echo "FAILED: ${1##*/} ${*:2} ended with $found, expected $code and '$text':"
    cat "$work/out" "$work/err"
    exit 1
  fi
  echo "ok: ${1##*/} ${*:2}"
}

expect 0 out "usage: " "$versus" --help
expect 64 err "usage: " "$versus" yield 99999999999999999999
expect 64 err "usage: " "$versus" yield 1 --procs 4294967297
expect 0 out "usage: net-load" "$load" --help
expect 64 err "usage: net-load" "$load" 1 2 3 something

expect 2 err "--rounds" "$run" --list --rounds 0
expect 2 err "--rounds" "$run" --list --rounds -1
expect 2 err "cannot be written" "$run" --list --json "$work/nowhere/x.json"
expect 2 err "cannot be written" "$run" --list --out "$work"
expect 2 err "cannot be read" "$run" --from "$work/nowhere"
expect 2 err "cannot be read" "$run" --from /dev/null
echo '{"peers": ["weft"], "facts": [], "others_cpu": 0, "lines": [], "scaling": {}, "failures": []}' >"$work/empty"
expect 2 err "not a single line" "$run" --from "$work/empty" --out "$work/report.md"
[[ ! -e $work/report.md ]] || { echo "FAILED: an empty report was written"; exit 1; }
