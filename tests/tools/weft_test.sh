#!/usr/bin/env bash
# weft_test.sh TOOL VERSION SUBJECT: the command line tool says what it should, also of the traces that SUBJECT writes.
set -euo pipefail
tool=$1 version=$2 subject=$3
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

fail() {
  echo "FAILED: $*" >&2
  exit 1
}

[[ $("$tool" version) == "weft $version" ]] || fail "weft version: $("$tool" version)"
for name in cpus affinity "cgroup quota" procs kernel "stack guards" membarrier epoll_pwait2 libdw "stack size" WEFTDEBUG; do
  env -u WEFTPROCS "$tool" env | grep -q "^$name  *[^ ]" || fail "weft env says nothing about $name"
done
WEFTPROCS=3 "$tool" env | grep -q "^procs  *3  *WEFTPROCS says so" || fail "weft env and WEFTPROCS=3"
WEFTPROCS=many "$tool" env | grep -q "WEFTPROCS=many is ignored" || fail "weft env and WEFTPROCS=many"
WEFTDEBUG=leaks=1,guard=mprotect "$tool" env | grep -q "^stack guards  *mprotect  *WEFTDEBUG says so" || fail "weft env and guard=mprotect"
[[ $("$tool" trace /dev/null 2>&1) == *"is empty"* ]] || fail "weft trace of an empty file"
if "$tool" trace "$0" 2>/dev/null; then fail "weft trace of what is no trace should fail"; fi
if "$tool" trace 2>/dev/null; then fail "weft trace without a file should fail"; fi
"$tool" help | grep -q "usage: weft" || fail "weft help"
if "$tool" nonsense 2>/dev/null; then fail "weft nonsense should fail"; fi
if "$tool" 2>/dev/null; then fail "weft alone should fail"; fi

"$subject" "$tmp/trace"
"$tool" trace "$tmp/trace" >"$tmp/whole" 2>"$tmp/note" || fail "weft trace"
grep -q "^the world was stopped once, for [^0]" "$tmp/whole" || fail "weft trace and the world: $(head -2 "$tmp/whole")"
[[ ! -s $tmp/note ]] || fail "weft trace of a whole file: $(cat "$tmp/note")"
"$tool" trace "$tmp/trace.saved" >"$tmp/saved" || fail "weft trace of a recording"
if grep -q "the world" "$tmp/saved"; then fail "weft trace counts the stop of save() itself: $(head -2 "$tmp/saved")"; fi

# Wherever the end of a file was cut off: there is no such place that is always within a packet.
size=$(stat -c %s "$tmp/trace") notes=0
for cut in {1..40}; do
  head -c $((size / 2 + cut)) "$tmp/trace" >"$tmp/cut"
  "$tool" trace "$tmp/cut" >"$tmp/half" 2>"$tmp/note" || fail "weft trace of a part: $(cat "$tmp/note")"
  grep -q "^trace of .* goroutines" "$tmp/half" || fail "weft trace of a part says: $(cat "$tmp/half")"
  if grep -q "its end is missing" "$tmp/note"; then notes=$((notes + 1)); fi
done
((notes > 20)) || fail "weft trace notes only $notes times of 40 that the end is missing"
for cut in 1 2 3; do
  head -c $cut "$tmp/trace" >"$tmp/cut"
  if "$tool" trace "$tmp/cut" 2>/dev/null; then fail "weft trace of $cut bytes should fail"; fi
done
printf '\nno trace, but begins as one' >"$tmp/cut"
if "$tool" trace "$tmp/cut" 2>/dev/null; then fail "weft trace of what begins with a line feed should fail"; fi

for command in "trace $tmp/trace" env version help; do
  if "$tool" $command 2>"$tmp/note" >/dev/full; then fail "weft $command >/dev/full should fail"; fi
  grep -q "weft: cannot write: No space" "$tmp/note" || fail "weft $command >/dev/full says: $(cat "$tmp/note")"
done
echo "ok"
