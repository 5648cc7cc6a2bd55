#!/usr/bin/env bash
# How the examples answer to --help, to arguments that they do not understand and to the system's refusals; that the servers say
# where they listen, also into a pipe; and that a server which is told to end does. Usage: arguments_test.sh ECHO CHAT PROXY TOUR
set -euo pipefail
echo=$1 chat=$2 proxy=$3 tour=$4

work=$(mktemp -d)
server=
trap '[[ -z $server ]] || kill -KILL "$server" 2>/dev/null || true; rm -rf "$work"' EXIT

fail() {
  echo "FAILED: $*"
  exit 1
}

# expect CODE out|err TEXT PROGRAM ARGUMENT...: it ends with that code, and what it says there begins with that text. Nothing is
# said elsewhere.
expect() {
  local code=$1 where=$2 text=$3 found=0
  shift 3
  local what="${1##*/} ${*:2}"
  timeout 60 "$@" >"$work/out" 2>"$work/err" || found=$?
  ((found == code)) || fail "$what ended with $found, expected $code"
  [[ $(<"$work/$where") == "$text"* ]] || fail "$what said '$(<"$work/$where")', expected '$text'"
  local elsewhere=out
  [[ $where == out ]] && elsewhere=err
  [[ ! -s $work/$elsewhere ]] || fail "$what also said '$(<"$work/$elsewhere")'"
  echo "ok: $what"
}

# start PROGRAM ARGUMENT...: sets `server` and `address`.
start() {
  rm -f "$work/said"
  mkfifo "$work/said"
  "$@" >"$work/said" &
  server=$!
  local line
  read -r -t 60 line <"$work/said" || fail "${1##*/} does not say where it listens"
  [[ $line == "listening on "* ]] || fail "${1##*/} said '$line'"
  address=${line#listening on }
  echo "ok: ${1##*/} listens on $address"
}

# stop SIGNAL CODE
stop() {
  local found=0
  kill "-$1" "$server"
  wait "$server" || found=$?
  server=
  ((found == $2)) || fail "SIG$1 ended it with $found, expected $2"
  echo "ok: ended by SIG$1"
}

for name in echo chat proxy tour; do
  expect 0 out "usage: $name" "${!name}" --help
done
for bad in foo serve "serve a b" "send x" --foo; do
  read -ra words <<<"$bad"
  expect 2 err "usage: echo" "$echo" "${words[@]}"
done
expect 2 err "usage: chat" "$chat" --foo
expect 2 err "usage: chat" "$chat" a b
expect 2 err "usage: proxy" "$proxy" a
expect 2 err "usage: proxy" "$proxy" a b c
for bad in abc -5 5x "" 99999999999999999999; do
  expect 2 err "usage: tour" "$tour" "$bad"
done
expect 0 out "3 goroutines" "$tour" 3

expect 1 err "echo: " "$echo" serve nonsense
expect 1 err "chat: " "$chat" nonsense
expect 1 err "proxy: " "$proxy" nonsense 127.0.0.1:1
for signal in TERM INT; do
  start "$echo" serve 127.0.0.1:0
  expect 0 out "hello" "$echo" send "$address" hello
  expect 1 err "echo: " "$echo" serve "$address"
  stop $signal 0
done
start "$chat" 127.0.0.1:0
stop TERM 143
start "$proxy" 127.0.0.1:0 127.0.0.1:1
stop TERM 143
