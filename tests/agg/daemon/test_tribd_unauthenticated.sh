#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# A tribd and unauthenticated peers without a key: thousands of their connections keep
# no job out and cost little.
# shellcheck disable=SC2317 # functions are called indirectly
# shellcheck source-path=SCRIPTDIR/../..
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"
. "${abs_top_srcdir:-.}/tests/agg/daemon/daemons.sh"
! missing curl "unauthenticated" || finish
! missing jq "unauthenticated" || finish
export TRIB_STOP_TIMEOUT_MS=20000 # no rank on a busy machine counts as stopped
HELD=512 # places for unauthenticated connections

ticks() { # of the processor, 100 a second
    sed 's/^.*) //' "/proc/${daemon_pid[one]}/stat" | awk '{ print $12 + $13 }'
}
files() { # number of open files
    find "/proc/${daemon_pid[one]}/fd" -mindepth 1 2>/dev/null | wc -l
}
have_come() { # CONNECTIONS
    status_of one ".events.connections >= $1"
}
comes_in() { # NAME: a job that is served with correct sums
    service one expect "$1: a job comes in" 0 "" timeout -k 5 50 "$perf" allreduce -n 2 --check \
        --iters 3 --warmup 0 --sizes 4K
    right "$said" && ! grep -q "without aggregators" "$said"
    result $? "$1: it is served, and its sums are right"
}

ulimit -Sn 1024
start_daemon one || finish
shown=("$dir/one.log")
[ "$(ulimit -Hn)" = 1024 ] || said_by one "open files: raised the soft limit from 1024 to "
result $? "tribd raises the limit of open files, and says so"
before=$(files)
service "one" "$build/tests/agg/daemon/hostile" unauthenticated "$dir/enough" >"$dir/unauthenticated.log" 2>&1 \
    </dev/null &
job_pid[unauthenticated]=$!
within 60 have_come 2000
result $? "2000 unauthenticated connections were accepted"
began=$(ticks)
from=$(date +%s%N)
for name in first second third; do
    comes_in "$name"
done
shown=("$dir/status" "$dir/one.log")
used=$(($(ticks) - began)) # for jobs and everything else
passed=$((($(date +%s%N) - from) / 10000000))
echo "# $used ticks of $passed"
[ $((2 * used)) -le "$passed" ] || [ "$slow" != 1 ]
result $? "tribd works for less than half of that time"
after=$(files)
[ "$after" -le $((before + HELD + 50)) ]
result $? "$after open files: unauthenticated peers have no more than $HELD"
within 20 have_come 3000 && status_of one '.events.connections_evicted > 100'
result $? "the oldest of them have made place for others, which is counted"
touch "$dir/enough"
patience=20 ended unauthenticated 0
result $? "they came until the end: $(cat "$dir/unauthenticated.log")"
[ "$(grep -c "authenticat" "$dir/one.log")" -le 200 ]
result $? "the log is not full of them"
few_open() { [ "$(files)" -le $((before + 10)) ]; }
within 20 few_open
result $? "their places are free"
kill "${daemon_pid[one]}"
ended one 0
result $? "it ends well"
finish
