#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Settings that divide a tribd between jobs take effect: threads, limits, weights.
# shellcheck disable=SC2317 # functions are called indirectly
# shellcheck source-path=SCRIPTDIR/../..
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"
. "${abs_top_srcdir:-.}/tests/agg/daemon/daemons.sh"
export TRIB_STOP_TIMEOUT_MS=20000 # no rank on a busy machine counts as stopped
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

# DAEMON, ticks: number of threads that have used this much processor time
busy_threads() {
    cat "/proc/${daemon_pid[$1]}/task/"*/stat 2>/dev/null | # some end meanwhile
        awk -v least="$2" '{ sub(/.*\) /, ""); if ($12 + $13 >= least) n++ } END { print n + 0 }'
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

# --- limits, and jobs that hold all of them ---

start_daemon slots "user_slots = 40" || finish
start_daemon user "user_memory = 4" || finish
start_daemon memory "memory = 4" || finish
start_daemon jobs "jobs = 1" || finish
start_daemon job "job_memory = 1" || finish
TRIB_SERVICE_WEIGHT=3 start_steps first "slots user memory jobs" 20
for name in slots user memory jobs; do
    within 20 runs $name first
done
status_of jobs '.jobs[0].weight == 3'
result $? "TRIB_SERVICE_WEIGHT comes to tribd"

refused() { # DAEMON, its setting, reason
    TRIB_SERVICE_WAIT_MS=0 service "$1" run "$2" "$3" --sizes 4K
    grep -q "warning: .*the ranks sum without aggregators" "$said"
    result $? "$2: the job sums without it, and says so"
}
refused slots "user_slots" "within the limits of user key, it needs 32 slots and 8 of 40 are free: job first of user key holds 32 of 40 slots since "
holds="bytes of 4M bytes are free: job first of user key holds [0-9]*K bytes of 4M bytes since " # 2M and its plans
refused user "user_memory" "within the limits of user key, it needs 2080K bytes and"
grep -q "$holds" "$said"
result $? "user_memory: it says who holds it"
refused memory "memory" "it needs 2080K bytes and"
grep -q "$holds" "$said"
result $? "memory: it says who holds it"
refused jobs "jobs" "1 of 1 jobs run: job first of user key holds 32 of 65536 slots since "
refused job "job_memory" "needs 2080K bytes, but the limit of a job is 1M bytes: request fewer or smaller slots"
end_steps first "beside jobs that were refused"
within 10 is_empty jobs
service "jobs" run "a job that comes once there is room" "codec none" --sizes 4K
! grep -q warning "$said"
result $? "it is let in"

# --- waiting and lending ---

start_daemon queue "jobs = 1" "user_queue = 1" || finish
start_daemon lends "slots = 32" "lend_s = 1" "log = debug" || finish
TRIB_SERVICE_RETRY_MS=0 start_steps holder "queue" 20
within 20 runs queue holder
TRIB_SERVICE_WAIT_MS=60000 service "queue" job waits allreduce -n 2 --check --iters 3 --warmup 0 --sizes 4K
within 20 status_of queue '.jobs[] | select(.name == "waits" and .state == "queued")'
result $? "user_queue: one job of a user waits"
TRIB_SERVICE_WAIT_MS=60000 service queue run "user_queue" "codec none" --sizes 4K
grep -q "the queue of user key is full, with 1 of 1 jobs: retry later" "$said"
result $? "user_queue: the next one is refused, and says so"
end_steps holder "beside jobs that wait"
shown=("$dir/waits.log" "$dir/queue.log")
ended waits 0 && right "$dir/waits.log" && ! grep -q warning "$dir/waits.log"
result $? "who waited is let in"
start_steps sleeper "lends" 4000
shown=("$dir/sleeper.log" "$dir/lends.log")
within 20 runs lends sleeper && within 20 said_by lends "job sleeper is idle: its slots are counted as free"
result $? "lend_s: a job that sums nothing lends its slots"
within 5 status_of lends '.lent_slots == 32 and .held.slots == 32'
result $? "which is shown"
service lends run "lend_s: another job comes" "codec none" --sizes 4K
! grep -q warning "$said"
result $? "it is let in, though the other has all slots"
within 20 said_by lends "job sleeper is active again: its slots count"
result $? "they are its own again when it sums"
end_steps sleeper "beside a job that had its slots meanwhile"

# --- memory of plans: half a MiB each ---

start_daemon small "job_memory = 12" || finish
start_daemon shared "user_memory = 16" || finish
start_steps beside "small shared" 20
within 20 runs small beside && within 20 runs shared beside
declare -A may=([small]="a job is 12" [shared]="all jobs of one user is 16")
for name in small shared; do
    service "$name" expect "$name: a job with 5 plans" 0 "5 plans, all right" \
        "$build/tools/trib-run" -n 2 -- "$build/tests/agg/daemon/plans" keep 5
    ! grep -q warning "$said"
    result $? "$name: they fit"
    service "$name" expect "$name: a job with 40 plans, one after the other" 0 "40 plans, all right" \
        "$build/tools/trib-run" -n 2 -- "$build/tests/agg/daemon/plans" free 40
    ! grep -q warning "$said"
    result $? "$name: those that were freed are not counted"
    service "$name" expect "$name: a job with 40 plans" 0 "40 plans, all right" \
        "$build/tools/trib-run" -n 2 -- "$build/tests/agg/daemon/plans" keep 40
    # Any plan can exceed the limit, including a small one that the job creates itself.
    grep -q "refused plan [0-9]*: [0-9]* elements with codec .* need [0-9]*K bytes; the limit of ${may[$name]}M bytes, and [0-9KM]* are in use; the ranks continue without aggregators" "$said"
    result $? "$name: more than it may have is refused, and it says so"
done
end_steps beside "beside a job that wants too much"
! grep -q "warning" "$dir/beside.log"
result $? "it noticed nothing"
within 10 is_empty small && status_of small '.held.bytes == 0' && within 10 is_empty shared &&
    status_of shared '.held.bytes == 0'
result $? "all memory is given back"

kill "${daemon_pid[@]}"
for name in "${!daemon_pid[@]}"; do
    shown=("$dir/$name.log")
    ended "$name" 0
    result $? "$name ends well"
done
finish
