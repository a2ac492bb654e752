#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# tribd without free descriptors: it logs this for each of its listeners, uses almost no
# processor time, and serves again when descriptors are free.
# shellcheck disable=SC2317 # functions are called indirectly
# shellcheck source-path=SCRIPTDIR/../..
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"
. "${abs_top_srcdir:-.}/tests/agg/daemon/daemons.sh"
unauthenticated=()

connect() { # PORT
    local fd
    exec {fd}<>"/dev/tcp/127.0.0.1/$1" && unauthenticated+=("$fd")
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
prlimit --pid "${daemon_pid[one]}" --nofile=40:400
for _ in {1..300}; do
    connect "${daemon_port[one]}"
done
for _ in 1 2 3; do
    connect "${daemon_http[one]}"
done
timeout 20 "$build/agg/daemon/tribctl" --config "$dir/one.conf" kick nobody >/dev/null 2>&1 </dev/null &
within 20 said_by one "cannot accept connections of jobs: Too many open files; raise ulimit -n"
result $? "it says that jobs cannot connect, and the cure"
within 20 said_by one "cannot accept HTTP connections: Too many open files; raise ulimit -n"
result $? "it says that nobody can look"
within 20 said_by one "cannot accept tribctl connections"
result $? "it says that tribctl waits"
before=$(ticks)
sleep 2
used=$(($(ticks) - before))
echo "# $used ticks of 200" | tee -a "$dir/one.log"
[ "$used" -le $((40 * slow)) ]
result $? "it takes next to no time"
[ "$(grep -c "cannot accept connections of jobs" "$dir/one.log")" -eq 1 ]
result $? "it does not say so again and again"
for fd in "${unauthenticated[@]}"; do
    exec {fd}>&-
done
within 20 is_served
result $? "it shows itself again"
service "one" job after allreduce -n 2 --check --iters 20 --sizes 4K
ended after 0 && right "$dir/after.log"
result $? "a job comes, and its sums are right"

# --- a job uses all of them ---

is_told() { # a new client does not wait: its connection is closed
    local fd code
    exec {fd}<>"/dev/tcp/127.0.0.1/${daemon_port[one]}" || return 1
    read -r -t 5 -u "$fd"
    code=$?
    exec {fd}>&-
    [ $code = 1 ]
} 2>/dev/null
sums_on() { # operations of the job so far
    status_of one ".jobs[] | select(.name == \"steps\" and .operations > $1)"
}
if ! missing curl "no descriptor but a job's" && ! missing jq "no descriptor but a job's"; then
    shown=("$dir/one.log" "$dir/status")
    prlimit --pid "${daemon_pid[one]}" --nofile=400:400
    start_steps steps one
    within 20 sums one steps
    for ((used = 0; used < 400; used++)); do # no lower number is free
        [ -e "/proc/${daemon_pid[one]}/fd/$used" ] || break
    done
    prlimit --pid "${daemon_pid[one]}" --nofile="$used:400"
    is_told
    result $? "without free descriptors, a new job is refused at once"
    prlimit --pid "${daemon_pid[one]}" --nofile=400:400
    within 20 sums_on 100
    result $? "the job continues"
    end_steps steps "beside callers who were sent away"
fi
kill -TERM "${daemon_pid[one]}"
ended one 0
result $? "it ends well"

# A log whose reader has stopped: a pipe that is full before tribd starts.
mkfifo "$dir/log"
exec {log}<>"$dir/log"
dd if=/dev/zero of="$dir/log" oflag=nonblock bs=4096 count=1024 2>/dev/null # until the pipe is full
"$build/agg/daemon/tribd" --config "$dir/one.conf" 2>"$dir/log" </dev/null &
daemon_pid[one]=$!
within 20 is_served
result $? "a log that nobody reads does not stop it"
service "one" job unread allreduce -n 2 --check --iters 20 --sizes 4K
ended unread 0 && right "$dir/unread.log"
result $? "jobs are served"
dropped() {
    curl -sf "http://127.0.0.1:${daemon_http[one]}/metrics" | grep -q '^tribd_log_lines_dropped_total [1-9]'
}
missing curl "it counts the lines that it dropped" || { within 20 dropped; result $? "it counts the lines that it dropped"; }
kill -TERM "${daemon_pid[one]}"
ended one 0
result $? "it obeys SIGTERM"
exec {log}>&-
finish
