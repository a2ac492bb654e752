#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# tribd and its jobs while one of them is killed, stopped, kicked or told to end: a job
# that has lost its service continues, and every step is correct. Jobs take steps until
# told to end, so the test does not depend on their speed.
# shellcheck disable=SC2317 # functions are called indirectly
# shellcheck source-path=SCRIPTDIR/../..
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"
. "${abs_top_srcdir:-.}/tests/agg/daemon/daemons.sh"
! missing curl "what happens in mid-run" || finish
! missing jq "what happens in mid-run" || finish

start_job() { # NAME, "DAEMON…", ms between steps
    start_steps "$@"
    within 60 sums "${2%% *}" "$1"
}

# JOB, what happened, words, number of ranks that print them: it continues with correct
# sums
well() {
    said_by_job "$1" "$3" "${4:-1}" "$2: the run says so"
    end_steps "$1" "$2"
}

transports=(shm tcp)
! "$build/tools/trib-info" --transports | grep -q "^  ucx  *UCX [0-9]" || transports+=(ucx)
without="continue without aggregators"
for transport in "${transports[@]}"; do
    start_daemon killed || finish
    TRIB_TRANSPORT=$transport start_job job "killed"
    kill -KILL "${daemon_pid[killed]}"
    well job "tribd is killed, over $transport" "$without"
    ended killed 137
    start_daemon drained "drain_ms = 3000" || finish
    TRIB_TRANSPORT=$transport start_job job "drained"
    kill -TERM "${daemon_pid[drained]}"
    shown=("$dir/drained.log")
    patience=4 ended drained 0
    result $? "SIGTERM in mid-run over $transport: it ends within drain_ms"
    said_by drained "job job: the service is shutting down"
    result $? "SIGTERM over $transport: it says why it leaves the job"
    well job "SIGTERM over $transport" "the service is shutting down; the ranks $without" 2
done

start_daemon one || finish
start_daemon two || finish
TRIB_TRANSPORT=tcp start_job job "one two"
kill -KILL "${daemon_pid[two]}"
well job "one tribd of two is killed" "$without"
shown=("$dir/one.log" "$dir/status")
within 6 is_empty one
result $? "the other tribd has its slots back"
ended two 137

for transport in "${transports[@]}"; do
    TRIB_TRANSPORT=$transport start_job job "one"
    kill -STOP "${daemon_pid[one]}"
    well job "tribd is stopped, over $transport" "$without"
    kill -CONT "${daemon_pid[one]}"
    within 6 is_empty one
    result $? "it continues, and its slots are free again"
done

# --- kick ---

start_daemon manned "socket = $dir/socket" || finish
kick() { # JOB, WHY...
    "$build/agg/daemon/tribctl" --config "$dir/manned.conf" kick "$@" >"$said" 2>&1
}
kicked="the operator ended the job there (tribctl kick)"
# During an operation, and between two: in the second case, only the next step notices.
for ms in 0 700; do
    for transport in "${transports[@]}"; do
        TRIB_TRANSPORT=$transport start_job job "manned" $ms
        shown=("$said" "$dir/manned.log")
        kick job "the rack moves at noon" && said_by manned "job job was kicked: the rack moves at noon"
        result $? "kick over $transport, $ms ms between steps: the log has the reason"
        well job "kick over $transport, $ms ms between steps" \
            "$kicked: the rack moves at noon; the ranks $without" 2
    done
done
TRIB_TRANSPORT=shm start_job job "manned"
kick job
well job "kick without a reason" "$kicked; the ranks $without" 2
shown=("$said")
kick job "$(head -c 300 /dev/zero | tr '\0' y)"
[ $? = 2 ] && grep -q "one line of at most 248 characters" "$said"
result $? "kick with a reason that is too long"

# trib-run has another child besides the ranks.
start_job first "one"
start_job second "one"
status_of one '.held.jobs == 2'
result $? "two jobs at a time"
victim=$(pgrep -x -P "${job_pid[first]}" steps | tail -n 1)
kill -KILL "$victim"
one_left() { status_of one '(.jobs | length) <= 1'; }
shown=("$dir/one.log" "$dir/first.log" "$dir/status")
within 5 one_left
result $? "a rank is killed: its job's slots are free within 5 s"
! ended first 0
result $? "its job fails"
end_steps second "beside it"
! grep -q warning "$dir/second.log"
result $? "the other job does not notice"
within 6 is_empty one
result $? "nobody holds anything afterwards"
finish
