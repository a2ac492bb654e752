#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# trib-perf store: pushes and pulls of a store compared with all-reduces of the same bytes.
# shellcheck source-path=SCRIPTDIR/../..
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"
. "${abs_top_srcdir:-.}/tests/agg/daemon/daemons.sh"
start_daemon one || finish

service one timeout $((120 * slow)) "$build/perf/trib-perf" store -n 2 --rounds 1 --rule sgd:rate=0.1 --csv - >"$said" 2>&1
result $? "runs"
[ "$(grep -cE '^store,(allreduce( again)?|push|pull|(push|pull) (sparse|coded)),2,[0-9]+,1,[0-9.]+,' "$said")" = 40 ]
result $? "a row for each way and size"
service one expect "a codec of one's own" 0 "push coded" "$build/perf/trib-perf" store -n 1 --rounds 1 --codec int8 --sizes 4K
service one expect "a wrong rule is told" 1 "did you mean" "$build/perf/trib-perf" store -n 1 --rule sdg:rate=1
expect "without a tribd" 1 "TRIB_SERVICE" "$build/perf/trib-perf" store -n 1
expect "a rule is of the store" 2 "only apply to store" "$build/perf/trib-perf" groups -n 1 --rule sum
finish
