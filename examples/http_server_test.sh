#!/usr/bin/env bash
# Asks the HTTP server example with curl. Usage: http_server_test.sh PROGRAM
set -euo pipefail
if ! command -v curl >/dev/null; then
  echo "curl is not installed: skipped"
  exit 77
fi

coproc server { exec "$1" 127.0.0.1:0; }
# shellcheck disable=SC2154  # coproc sets it
server_pid=$server_PID
read -r _ _ where <&"${server[0]}"
echo "the server listens on $where"
ask() { curl --silent --show-error --noproxy '*' --max-time 60 "$@"; }

check() {  # check WHAT EXPECTED FOUND
  if [[ $2 != "$3" ]]; then
    echo "$1: expected '$2', found '$3'"
    exit 1
  fi
  echo "$1: as expected"
}

check "a page" "Hello, world!" "$(ask "http://$where/")"
check "a path" "Hello, you!" "$(ask "http://$where/hello/you")"
check "what is not there" 404 "$(ask -o /dev/null -w '%{http_code}' "http://$where/nothing")"
check "a head" 200 "$(ask -I -o /dev/null -w '%{http_code}' "http://$where/hello/head")"
check "the head of the first page" 200 "$(ask -I -o /dev/null -w '%{http_code}' "http://$where/")"
check "the head of what is not there" 404 "$(ask -I -o /dev/null -w '%{http_code}' "http://$where/nothing")"
body=$(head -c 300000 /dev/zero | tr '\0' 'b')
check "a large body" "$body" "$(ask --data-binary @- "http://$where/echo" <<<"$body")"
check "three requests on one connection" 1 \
  "$(ask -w '%{num_connects}\n' -o /dev/null -o /dev/null -o /dev/null "http://$where/" "http://$where/hello/a" "http://$where/" |
    awk '{ n += $1 } END { print n }')"
check "an unheard-of protocol" 400 "$(ask --http1.1 -X 'NO HTTP' -o /dev/null -w '%{http_code}' "http://$where/")"
check "more than a request may have" 400 \
  "$(head -c 3000000 /dev/zero | ask -H 'Expect:' --data-binary @- -o /dev/null -w '%{http_code}' "http://$where/echo")"
check "the old protocol" "Hello, world!" "$(ask --http1.0 "http://$where/")"

kill -TERM "$server_pid"
wait "$server_pid"
echo "the server has ended"
