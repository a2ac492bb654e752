#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# examples/same: the rank whose parameters differ is named.
# shellcheck source=tests/harness/tap.sh
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"

for transport in shm tcp; do
    TRIB_TRANSPORT=$transport timeout $((60 * slow)) "$build/tools/trib-run" -n 4 -- \
        "$build/examples/same" >"$said" 2>&1
    grep -q "rank 2 differs" "$said" && grep -q "all are the same" "$said"
    result $? "$transport: rank 2 is named"
done
finish
