#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# perf/store_pushes: pushes and pulls of a store beside all-reduces of the same bytes.
# shellcheck source-path=SCRIPTDIR/../..
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"
. "${abs_top_srcdir:-.}/tests/tribd/daemons.sh"
start_daemon one || finish

service one timeout $((120 * slow)) "$build/tools/trib-run" -n 2 -- "$build/perf/store_pushes" 1 sgd:rate=0.1 >"$said" 2>&1
result $? "runs"
[ "$(grep -cE '^(\[0\] )?(allreduce|push|pull|(push|pull)_(sparse|coded)),[0-9]+,[0-9.]+,' "$said")" = 35 ]
result $? "a row for each way and size"
finish
