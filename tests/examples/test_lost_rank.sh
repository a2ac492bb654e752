#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# examples/lost_rank and examples/rewind: rank 0 dies by SIGKILL, and the other three go on without it.
# shellcheck source=tests/harness/tap.sh
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"

for transport in shm tcp; do
    TRIB_TRANSPORT=$transport timeout $((60 * slow)) "$build/tools/trib-run" -n 4 --grace 50 -- \
        "$build/examples/lost_rank" >"$said" 2>&1
    [ $? = 137 ] && [ "$(grep -c 'of 3 has done 20 steps' "$said")" = 3 ] && grep -q 'rank 0 .*is lost' "$said"
    result $? "$transport: three ranks go on"
    TRIB_TRANSPORT=$transport timeout $((60 * slow)) "$build/tools/trib-run" -n 4 --grace 50 -- \
        "$build/examples/rewind" >"$said" 2>&1
    [ $? = 137 ] && [ "$(grep -c 'of 3: 20 steps' "$said")" = 3 ]
    result $? "$transport: and so do their plans"
done
finish
