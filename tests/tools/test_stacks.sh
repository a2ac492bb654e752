#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The activity of each rank, shown by trib-run at SIGUSR1 and by trib-info stacks.
# Functions are called through within; shells start asynchronously.
# shellcheck disable=SC2317
# shellcheck source=tests/harness/tap.sh
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"
run=$build/tools/trib-run
info=$build/tools/trib-info
perf=$build/perf/trib-perf
job=0
at_exit() { [ "$job" = 0 ] || kill -KILL "$job"; }
has() { grep -qE -- "$1" "$2"; }
stacks() { "$info" stacks "$job" >"$said" 2>&1; }
both_sleep() { [ "$(pgrep -c -P "$job" sleep)" = 2 ]; }
say() { stacks && has "$1" "$said"; }
asked() { kill -USR1 "$job" && sleep 0.1 && has "$1" "$dir/err"; }
table() { within 20 asked "$1"; } # a rank is sometimes outside the library

expect "help" 0 "usage: trib-info stacks" "$info" stacks --help
expect "no number" 2 "is not a process ID" "$info" stacks x
expect "two numbers" 2 "" "$info" stacks 1 2
expect "no rank" 1 "is not a rank with a communicator" "$info" stacks $$

# Sums continue while a tool reads the pages.
# The rank that is stopped below is not given up, however slow the tools are here.
TRIB_STOP_TIMEOUT_MS=100000 "$run" -n 2 -- "$perf" allreduce --sizes 8 --iters 100000000 >"$dir/out" 2>"$dir/err" &
job=$!
within 20 say "^ +1 +[0-9]+ .*allreduce [0-9]+, 8 B"
result $? "a rank that sums"
table "^ +1 +[0-9]+ .*allreduce [0-9]+"
result $? "SIGUSR1 to trib-run"
within 20 say "allreduce [0-9]+, 8 B" && ! has "ended by signal" "$dir/err"
result $? "disturbs no sum"

# A stopped rank, and the rank that waits for it
pid=$(awk '$1 == 1 { print $2 }' "$said")
stopped_in_sum() {
    kill -STOP "$pid"
    within 3 say "waits for a contribution of rank 1, (0\.[2-9]|[1-9])" &&
        has "^ +1 +$pid .*stopped; (allreduce|outside).* for (at most )?(0\.[2-9]|[1-9])" "$said" && return
    kill -CONT "$pid" # it was stopped in a barrier between samples
    sleep 0.1
    return 1
}
stopped_in_sum || stopped_in_sum || stopped_in_sum || stopped_in_sum
result $? "a rank that is stopped, and for how long"
stopped_as_json() {
    "$info" stacks --json "$pid" | python3 -c '
import json, sys
ranks = json.load(sys.stdin)["ranks"]
assert [r["stopped"] for r in ranks] == [False, True], ranks
assert ranks[0]["waits_for"] == 1 and ranks[0]["age_s"] > 0.1, ranks' >"$said" 2>&1
}
within 20 stopped_as_json
result $? "the same as json, asked by a rank"
straggles() {
    "$info" top --json "$pid" | python3 -c '
import json, sys
ranks = json.load(sys.stdin)["ranks"]
assert [r["straggler"] for r in ranks] == [False, True], ranks
assert ranks[0]["inside_percent"] == 100 and ranks[0]["operations_per_s"] == 0, ranks' >"$said" 2>&1
}
within 20 straggles
result $? "top names the rank for which others wait"
kill -CONT "$pid"
expect "top, once" 0 "ranks, rank 0 is process" "$info" top --once "$job"
has_rates() {
    "$info" top --once "$job" >"$said" 2>&1
    has "^ +0 .* [1-9][0-9]+ +[0-9.]+ [KMG]iB/s +[0-9]+ %" "$said"
}
within 20 has_rates
result $? "has rates"
expect "no tribd" 1 "cannot query http://127.0.0.1:1: Connection refused" "$info" top --once http://127.0.0.1:1
expect "no address" 1 "the URL must be http://HOST:PORT" "$info" top --once http://127.0.0.1
expect "top without a terminal" 2 "is not a terminal" "$info" top
kill "$job"
wait "$job"
job=0

# Ranks without a communicator; SIGUSR1 would end them
"$run" -n 2 -- sleep 60 >"$dir/out" 2>"$dir/err" &
job=$!
within 20 both_sleep
table "^ +1 +[0-9]+ +has no communicator" && ! has "ended by signal" "$dir/err"
result $? "ranks that have not come to trib_init"
kill "$job"
wait "$job"
job=0
finish
