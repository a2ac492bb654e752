#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# A job with a quorum: a rank is stopped, the others finish their sums and learn which
# rank is missing; no contribution of that rank is lost.
# shellcheck disable=SC2317 # functions are called indirectly
# shellcheck source-path=SCRIPTDIR/../..
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"
. "${abs_top_srcdir:-.}/tests/agg/daemon/daemons.sh"
! missing curl "where jobs are" || finish
! missing jq "where jobs are" || finish
export TRIB_STOP_TIMEOUT_MS=60000

start_late() { # NAME, "DAEMON…"
    rm -f "$dir/$1.stop"
    : >"$dir/$1.log" # of an earlier job with this name
    TRIB_SERVICE_JOB=$1 service "$2" "$build/tools/trib-run" -n 3 -- "$build/tests/agg/daemon/late" \
        "$dir/$1.stop" >"$dir/$1.log" 2>&1 </dev/null &
    job_pid[$1]=$!
}

says() { # JOB, words: printed by now, or the job has ended
    grep -qE -- "$2" "$dir/$1.log" || ! kill -0 "${job_pid[$1]}" 2>/dev/null
}

stops() { # JOB, rank, process: it is late for the next step
    touch "$dir/$1.stop.$2"
    within 20 is_stopped "$3"
}

is_stopped() { # process
    grep -q '^State:[[:space:]]T' "/proc/$1/status"
}

process_of() { # JOB, rank
    sed -n "s/.*rank $2 is process \([0-9]*\).*/\1/p" "$dir/$1.log"
}

for transport in shm tcp; do
    export TRIB_TRANSPORT=$transport
    start_daemon one || finish
    start_daemon two || finish
    start_late job "one two"
    shown=("$dir/job.log" "$dir/one.log")
    within 60 says job "rank 2 is process" && within 20 runs one job
    result $? "a job with a quorum is at two services, over $transport"
    late=$(process_of job 2)
    stops job 2 "$late"
    within 20 says job "plan 0 of step .* lacks rank 2" && within 20 says job "plan 1 of step .* lacks rank 2"
    result $? "rank 2 is stopped: both plans of a step continue and report it as missing"
    sleep 0.3
    is_stopped "$late"
    result $? "it still is"
    within 10 status_of one '.jobs[0].short_chunks > 0'
    result $? "tribd counts chunks without it"
    kill -CONT "$late"
    sleep 0.2
    touch "$dir/job.stop"
    patience=90 ended job 0 && grep -q "steps, all right" "$dir/job.log"
    result $? "it continues: no contribution is lost"
    shown=("$dir/status" "$dir/one.log")
    within 10 status_of one '.total.dropped_frames > 0'
    result $? "what came too late is counted as dropped"
    curl -sf "http://127.0.0.1:${daemon_http[one]}/metrics" >"$dir/metrics"
    grep -q '^tribd_dropped_frames_total [1-9]' "$dir/metrics"
    result $? "in /metrics, too"

    service "one two" job perf allreduce -n 3 --quorum 0.6,deadline=5ms --check --iters 50 --sizes 4K,1M
    shown=("$dir/perf.log")
    patience=60 ended perf 0 && right "$dir/perf.log"
    result $? "trib-perf --quorum: its results are right"

    TRIB_QUORUM=0.9,deadline=20ms service "one two" job perf allreduce -n 3 --check --iters 50 \
        --sizes 4K,1M
    patience=60 ended perf 0 && right "$dir/perf.log" && ! grep -q "warning" "$dir/perf.log"
    result $? "TRIB_QUORUM=0.9,deadline=20ms: its results are right"

    start_late lost "one two"
    shown=("$dir/lost.log" "$dir/one.log")
    within 60 says lost "rank 1 is process"
    late=$(process_of lost 1)
    stops lost 1 "$late"
    within 20 says lost "step .* lacks rank 1"
    result $? "rank 1 is stopped, over $transport"
    kill -KILL "${daemon_pid[two]}"
    sleep 0.3
    kill -CONT "$late"
    within 60 says lost "continue without aggregators"
    touch "$dir/lost.stop"
    patience=90 ended lost 0 && grep -q "steps, all right" "$dir/lost.log"
    result $? "a tribd is killed before it continues: no contribution is lost"
    ended two 137
    kill -TERM "${daemon_pid[one]}"
    ended one 0
done
finish
