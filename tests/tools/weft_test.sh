#!/usr/bin/env bash
# weft_test.sh TOOL VERSION: the command line tool says what it should.
set -euo pipefail
tool=$1 version=$2

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
echo "ok"
