#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# examples/interrupt: a SIGINT to one rank ends the wait of all, and all say which.
# shellcheck source=tests/harness/tap.sh
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"

"$build/tools/trib-run" -n 3 -- "$build/examples/interrupt" >"$said" 2>&1 &
job=$!
for ((i = 0; i < 200; i++)); do
    [ "$(grep -c waits "$said")" = 3 ] && break
    sleep 0.05
done
pid=$(sed -n 's/^\[0\] process \([0-9]*\) waits/\1/p' "$said")
[ -n "$pid" ] && kill -INT "$pid"
result $? "rank 0 waits"
wait $job
[ "$(grep -c 'rank 0 .*process '"$pid"'.* has given up in barrier .* returned 2' "$said")" = 3 ]
result $? "all ranks say that rank 0 has given up"
finish
