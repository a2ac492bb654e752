#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# examples/checked: statistics of each step, and a byte that is damaged on its way ends the job with
# the names of rank and chunk.
# shellcheck source=tests/harness/tap.sh
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"

checked() { # TRANSPORT
    TRIB_TRANSPORT=$1 TRIB_STATS=1 timeout $((60 * slow)) "$build/tools/trib-run" -n 3 -- \
        "$build/examples/checked" >"$said" 2>&1
}

export TRIB_CHECK=sum
for transport in shm tcp; do
    checked $transport
    result $? "$transport: nothing is damaged"
    # 100000 elements, 20000 of each of 0, 1, 2, 3, 4, times 3 ranks and the step
    grep -q "step 4: norm 11619, mean norm 6971.37, largest 60, 20000 zeros, 0 NaN" "$said"
    result $? "$transport: statistics"
done
damaged='tcp+corrupt:nth=7,least=4096'
! checked "$damaged" && grep -q "sent chunk [0-9]*, damaged in transit" "$said"
result $? "a damaged chunk is named"
export TRIB_CHECK=none
checked "$damaged" && ! grep -q "damaged" "$said"
result $? "without the check nobody is told"
finish
