#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# examples/abort_all: rank 2 ends a sum that the others wait in, and says why on all ranks.
# shellcheck source=tests/harness/tap.sh
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"

for transport in shm tcp; do
    TRIB_TRANSPORT=$transport timeout $((60 * slow)) "$build/tools/trib-run" -n 4 -- \
        "$build/examples/abort_all" >"$said" 2>&1 &&
        [ "$(grep -c 'rank 2 .*has called trib_comm_abort: the loss is NaN' "$said")" = 4 ] &&
        [ "$(grep -c 'of 4 continues' "$said")" = 4 ]
    result $? "$transport: all ranks are told, and go on"
done
finish
