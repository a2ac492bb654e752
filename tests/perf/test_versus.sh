#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# trib-perf groups and neighbors: rows are compared with an all-reduce of the same bytes.
# shellcheck source=tests/harness/tap.sh
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"
perf=$build/perf/trib-perf

timeout $((120 * slow)) "$build/tools/trib-run" -n 2 -- "$perf" groups --rounds 1 >"$said" 2>&1
result $? "groups: by a launcher"
[ "$(grep -cE '102228128 B (allreduce|group|group marked|allreduce again) +[0-9]' "$said")" = 4 ]
result $? "groups: a row for each way"
grep -q "161 tensors in 53 buckets, 109 fused; 540992 bytes copied" "$said"
result $? "groups: what was fused and copied"
for ranks in 1 2 3; do
    expect "neighbors of $ranks ranks" 0 "exponential" timeout $((60 * slow)) "$perf" neighbors -n $ranks --rounds 2 --sizes 4,64K --csv -
    [ "$(grep -c "^neighbors,[a-z ]*,$ranks,[0-9]*,2,[0-9.]*," "$said")" = 10 ]
    result $? "neighbors of $ranks ranks: a row for each way and size"
done
for memory in malloc register; do
    expect "neighbors in memory of $memory" 0 "memory $memory" "$perf" neighbors -n 2 --rounds 2 --memory $memory --sizes 4K
done
expect "as json" 0 '"way": "both sides"' "$perf" neighbors -n 2 --rounds 2 --sizes 4K --json -
expect "groups have their size" 2 "leave out --sizes" "$perf" groups -n 2 --sizes 4
expect "no whole float" 2 "not a whole number of float32" "$perf" neighbors -n 2 --sizes 6
expect "a word" 2 "accepts only options" "$perf" neighbors ring
expect "no place for what comes out" 2 "cannot write /none/such" "$perf" neighbors -n 2 --sizes 4 --csv /none/such
expect "its name does not stand first" 2 "groups must be the first argument" "$perf" -n 2 groups
finish
