#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# tribd and its jobs while one of them is killed, stopped or told to end: a run that has
# lost its service ends, and is right.
# shellcheck disable=SC2317 # the functions are called, by others
# shellcheck source-path=SCRIPTDIR/../..
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"
. "${abs_top_srcdir:-.}/tests/tribd/daemons.sh"
! missing curl "what happens in mid-run" || finish
! missing jq "what happens in mid-run" || finish

# Long enough that it does not end before what is to happen to it.
start_job() { # NAME, "DAEMON…", arguments of trib-perf
    service "$2" job "$1" allreduce -n 2 --check --sizes 64K --iters "${iters:-12000}" "${@:3}"
    within 20 runs "${2%% *}" "$1"
    sleep 0.1
}

well() { # JOB, TEXT, words: it ends well, right, and with these words
    shown=("$dir/$1.log" "$said")
    patience=${patience:-60} ended "$1" 0 && right "$dir/$1.log"
    result $? "$2: the run ends, and is right"
    grep -qF -- "$3" "$dir/$1.log"
    result $? "$2: the run says so"
}

for transport in shm tcp; do
    for codec in none topk:ratio=0.05; do
        start_daemon killed || finish
        TRIB_TRANSPORT=$transport start_job job "killed" --codec "$codec"
        kill -KILL "${daemon_pid[killed]}"
        well job "tribd is killed, $codec over $transport" "go on without the service"
        ended killed 137
    done
    start_daemon drained "drain_ms = 3000" || finish
    TRIB_TRANSPORT=$transport start_job job "drained"
    kill -TERM "${daemon_pid[drained]}"
    shown=("$dir/drained.log")
    patience=4 ended drained 0
    result $? "SIGTERM in mid-run over $transport: it ends within drain_ms"
    well job "SIGTERM over $transport" "go on without the service"
done

start_daemon one || finish
start_daemon two || finish
TRIB_TRANSPORT=tcp start_job job "one two"
kill -KILL "${daemon_pid[two]}"
well job "one tribd of two is killed" "go on without the service"
shown=("$dir/one.log" "$dir/status")
within 6 is_empty one
result $? "the other tribd has its slots back"
ended two 137

for transport in shm tcp; do
    TRIB_TRANSPORT=$transport start_job job "one"
    kill -STOP "${daemon_pid[one]}"
    well job "tribd is stopped, over $transport" "go on without the service"
    kill -CONT "${daemon_pid[one]}"
    within 6 is_empty one
    result $? "it goes on, and its slots are free again"
done

# A rank is the child of trib-perf that is no other's.
iters=10000000 start_job first "one"
iters=30000 start_job second "one"
status_of one '.held.jobs == 2'
result $? "two jobs at a time"
victim=$(pgrep -P "${job_pid[first]}" | tail -n 1)
kill -KILL "$victim"
one_left() { status_of one '(.jobs | length) <= 1'; }
shown=("$dir/one.log" "$dir/first.log" "$dir/status")
within 5 one_left
result $? "a rank is killed: its job's slots are free within 5 s"
! ended first 0
result $? "its job fails"
shown=("$dir/second.log" "$dir/one.log")
patience=60 ended second 0 && right "$dir/second.log" && ! grep -q warning "$dir/second.log"
result $? "the other job does not notice"
within 6 is_empty one
result $? "nobody holds anything afterwards"
finish
