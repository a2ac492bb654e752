#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# That settings which share a tribd out have effect: threads, limits, weights.
# shellcheck disable=SC2317 # the functions are called, by others
# shellcheck source-path=SCRIPTDIR/../..
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"
. "${abs_top_srcdir:-.}/tests/tribd/daemons.sh"
export TRIB_STOP_TIMEOUT_MS=20000 # a busy machine is no stopped one
export TRIB_CHUNK=64K TRIB_WINDOW=8 # 32 slots of two ranks: 2 MiB
if missing curl "what is shared" || missing jq "what is shared"; then
    finish
fi

run() { # NAME, words, arguments of trib-perf
    expect "$1" 0 "$2" timeout -k 5 60 "$perf" allreduce -n 2 --check --iters 3 --warmup 0 "${@:3}"
    right "$said"
    result $? "$1: right"
}

# --- threads ---

busy_threads() { # DAEMON, ticks of the clock: so many of its threads have worked so long
    awk -v least="$2" '{ sub(/.*\) /, ""); if ($12 + $13 >= least) n++ } END { print n + 0 }' \
        "/proc/${daemon_pid[$1]}/task/"*/stat
}
two_work() {
    [ "$(busy_threads wide 10)" -ge 2 ] || ! kill -0 "${job_pid[twice]}" 2>/dev/null
}
TRIBD_THREADS=2 start_daemon wide || finish
shown=("$dir/twice.log" "$dir/wide.log")
start_steps twice "wide wide"
within 20 two_work && [ "$(busy_threads wide 10)" -ge 2 ]
result $? "a job that names a tribd twice is summed by two threads"
end_steps twice "two threads"

# --- who holds what ---

start_daemon slots "user_slots = 40" || finish
start_daemon user "user_memory = 3" || finish
start_daemon memory "memory = 3" || finish
start_daemon jobs "jobs = 1" || finish
start_daemon job "job_memory = 1" || finish
TRIB_SERVICE_WEIGHT=3 start_steps first "slots user memory jobs" 20
for name in slots user memory jobs; do
    within 20 runs $name first
done
status_of jobs '.jobs[0].weight == 3'
result $? "TRIB_SERVICE_WEIGHT comes to tribd"

refused() { # DAEMON, what its setting is, why
    TRIB_SERVICE_WAIT_MS=0 service "$1" run "$2" "$3" --sizes 4K
    grep -q "warning: .*the ranks sum without a service" "$said"
    result $? "$2: the job sums without it, and says so"
}
refused slots "user_slots" "among what user key may hold, it needs 32 slots and 8 of 40 are free: job first of user key holds 32 of 40 slots since "
refused user "user_memory" "among what user key may hold, it needs 2M bytes and 1M bytes of 3M bytes are free: job first of user key holds 2M bytes of 3M bytes since "
refused memory "memory" "it needs 2M bytes and 1M bytes of 3M bytes are free: job first of user key holds 2M bytes of 3M bytes since "
refused jobs "jobs" "1 of 1 jobs run: job first of user key holds 32 of 65536 slots since "
refused job "job_memory" "needs 2M bytes, and a job may hold 1M bytes: ask for fewer or smaller slots"
end_steps first "beside jobs that were refused"
within 10 is_empty jobs
service "jobs" run "a job that comes once there is room" "codec none" --sizes 4K
! grep -q warning "$said"
result $? "it is let in"
kill "${daemon_pid[@]}"
for name in "${!daemon_pid[@]}"; do
    shown=("$dir/$name.log")
    ended "$name" 0
    result $? "$name ends well"
done
finish
