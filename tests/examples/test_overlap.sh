#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# examples/overlap: several sums under way, on three ranks, also beside a service that sums.
# shellcheck source=tests/harness/tap.sh
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"

for transport in shm tcp; do
    TRIB_TRANSPORT=$transport timeout $((60 * slow)) "$build/tools/trib-run" -n 3 -- \
        "$build/examples/overlap" >"$said" 2>&1
    grep -q "sums 3 6 9 12" "$said"
    result $? "$transport: each sum is right"
done
finish
