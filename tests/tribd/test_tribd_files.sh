#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# tribd with no descriptor left: it says so for each of its listeners, takes next to no time
# meanwhile, and serves again when descriptors are free.
# shellcheck disable=SC2317 # the functions are called, by others
# shellcheck source-path=SCRIPTDIR/../..
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"
. "${abs_top_srcdir:-.}/tests/tribd/daemons.sh"
strangers=()

connect() { # PORT
    local fd
    exec {fd}<>"/dev/tcp/127.0.0.1/$1" && strangers+=("$fd")
} 2>/dev/null

ticks() { # of the processor, 100 a second
    sed 's/^.*) //' "/proc/${daemon_pid[one]}/stat" | awk '{ print $12 + $13 }'
}

is_served() {
    local fd line=""
    exec {fd}<>"/dev/tcp/127.0.0.1/${daemon_http[one]}" || return 1
    printf 'GET /metrics HTTP/1.0\r\nHost: localhost\r\n\r\n' >&"$fd"
    read -r -t 5 line <&"$fd"
    exec {fd}>&-
    [[ $line == *" 200 "* ]]
} 2>/dev/null

start_daemon one "socket = $dir/socket" || finish
shown=("$dir/one.log")
prlimit --pid "${daemon_pid[one]}" --nofile=40:40
for _ in {1..300}; do
    connect "${daemon_port[one]}"
done
for _ in 1 2 3; do
    connect "${daemon_http[one]}"
done
timeout 20 "$build/tribd/tribctl" --config "$dir/one.conf" kick nobody >/dev/null 2>&1 </dev/null &
within 20 said_by one "connections of jobs can be taken: Too many open files; raise ulimit -n"
result $? "it says that jobs cannot connect, and the cure"
within 20 said_by one "over HTTP can be taken: Too many open files; raise ulimit -n"
result $? "it says that nobody can look"
within 20 said_by one "tribctl cannot be heard"
result $? "it says that tribctl waits"
before=$(ticks)
sleep 2
used=$(($(ticks) - before))
echo "# $used ticks of 200" | tee -a "$dir/one.log"
[ "$used" -le $((40 * slow)) ]
result $? "it takes next to no time"
[ "$(grep -c "connections of jobs can be taken" "$dir/one.log")" -eq 1 ]
result $? "it does not say so again and again"
for fd in "${strangers[@]}"; do
    exec {fd}>&-
done
within 20 is_served
result $? "it shows itself again"
service "one" job after allreduce -n 2 --check --iters 20 --sizes 4K
ended after 0 && right "$dir/after.log"
result $? "a job comes, and its sums are right"
kill -TERM "${daemon_pid[one]}"
ended one 0
result $? "it ends well"
finish
