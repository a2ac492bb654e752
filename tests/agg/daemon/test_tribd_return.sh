#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Jobs that lose a tribd, use the remaining one, and use both once it is back; jobs that
# reach a tribd started later; jobs that avoid one that drains. Each step is checked.
# shellcheck disable=SC2317 # functions are called indirectly
# shellcheck source-path=SCRIPTDIR/../..
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"
. "${abs_top_srcdir:-.}/tests/agg/daemon/daemons.sh"
! missing curl "where jobs are" || finish
! missing jq "where jobs are" || finish
export TRIB_LOG=info TRIB_SERVICE_RETRY_MS=100

where() { # DAEMON, JOB, description
    shown=("$dir/$2.log" "$dir/$1.log" "$dir/status")
    within 20 status_of "$1" ".jobs | map(select(.name == \"$2\" and .state == \"admitted\")) | length == 1"
    result $? "$3"
}

for transport in shm tcp; do
    export TRIB_TRANSPORT=$transport
    start_daemon one || finish
    start_daemon two || finish
    start_steps job "one two"
    within 60 sums two job
    where two job "both have the job, over $transport"
    kill -KILL "${daemon_pid[two]}"
    ended two 137
    said_by_job job "continue without aggregators" 1 "one of two is killed: the ranks go on"
    said_by_job job "127.0.0.1:${daemon_port[one]} (1 of 2) sums from operation" 1 \
        "they come to the one that is left"
    where one job "which has the job"
    again two || finish
    said_by_job job "more aggregators are available" 2 "it is back: the ranks leave the one"
    said_by_job job "127.0.0.1:${daemon_port[two]} (2 of 2) sum from operation" 1 \
        "they come to both"
    where one job "the one has the job"
    where two job "and so has the other"
    end_steps job "lost and back, over $transport"
    shown=("$dir/one.log" "$dir/status")
    within 6 is_empty one
    result $? "nobody holds anything afterwards"
    kill "${daemon_pid[one]}" "${daemon_pid[two]}"
    ended one 0
    ended two 0
done

# The job starts without tribd; its steps are so slow that the first message of a
# service waits for them.
start_steps early "one" 600
said_by_job early "sum without aggregators" 1 "no tribd: the ranks sum"
again one || finish
said_by_job early "(1 of 1) sums from operation" 1 "there is one: they come to it"
where one early "which has the job"
kill -TERM "${daemon_pid[one]}"
said_by_job early "continue without aggregators" 1 "it drains: they leave it"
ended one 0
end_steps early "begun without"
[ "$(grep -cF "sums from operation" "$dir/early.log")" = 1 ]
result $? "and stay away"

# tribd is stopped between admission, which the job requests between steps, and the
# wireup: the next step waits no longer than for a stopped rank.
start_steps met "one" 2000
said_by_job met "sum without aggregators" 1 "no tribd: the ranks sum"
again one || finish
shown=("$dir/one.log")
within 20 said_by one "job met: 2 ranks" && kill -STOP "${daemon_pid[one]}"
result $? "there is one, and it is stopped before they meet"
said_by_job met "silent for 4000 ms: it is stopped, or its host is unreachable; the ranks continue without aggregators" \
    1 "they wait 4 s for it"
kill -CONT "${daemon_pid[one]}"
said_by_job met "(1 of 1) sums from operation" 1 "it goes on: they come to it"
end_steps met "stopped before they meet"
kill -TERM "${daemon_pid[one]}"
ended one 0

# 0: never.
start_daemon three || finish
TRIB_SERVICE_RETRY_MS=0 start_steps never "three"
within 60 sums three never && where three never "a job that would not come back"
kill -KILL "${daemon_pid[three]}"
ended three 137
said_by_job never "continue without aggregators" 1 "its tribd is killed: it goes on"
again three || finish
end_steps never "never back"
! grep -qF "from operation" "$dir/never.log" && ! said_by three "job never"
result $? "and is not seen again"
finish
