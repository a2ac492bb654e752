#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# examples/rebucket: what a plan holds back goes to the plans of the parts.
# shellcheck source=tests/harness/tap.sh
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"

for transport in shm tcp; do
    TRIB_TRANSPORT=$transport timeout $((60 * slow)) "$build/tools/trib-run" -n 3 -- \
        "$build/examples/rebucket" >"$said" 2>&1
    result $? "$transport: all ranks do well"
    [ "$(grep -c "held back 1, then summed 3$" "$said")" = 3 ]
    result $? "$transport: each rank has the sum of what all held back"
done
finish
