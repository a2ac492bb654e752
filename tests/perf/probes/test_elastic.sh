#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# perf/elastic: the time from the loss of a rank, or from a join, to the next sum of all.
# shellcheck source=tests/harness/tap.sh
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"

timeout $((60 * slow)) "$build/perf/elastic" 2 3 tcp >"$said" 2>&1
result $? "runs"
[ "$(grep -cE '^(kill|stop|join),[0-9.]+,' "$said")" = 3 ]
result $? "a row for a kill, one for a stop and one for a join"
finish
