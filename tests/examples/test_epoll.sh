#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# examples/epoll: an event loop is told that two plans are done.
# shellcheck source=tests/harness/tap.sh
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"

for transport in shm tcp; do
    TRIB_TRANSPORT=$transport timeout $((60 * slow)) "$build/tools/trib-run" -n 3 -- \
        "$build/examples/epoll" >"$said" 2>&1
    result $? "$transport: all ranks do well"
    [ "$(grep -c "plan 0: sum 3$" "$said") $(grep -c "plan 1: sum 6$" "$said")" = "3 3" ]
    result $? "$transport: both sums are right"
done
finish
