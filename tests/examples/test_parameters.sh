#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# examples/parameters: ranks fit a vector that lives in tribd.
# shellcheck source-path=SCRIPTDIR/../..
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"
. "${abs_top_srcdir:-.}/tests/tribd/daemons.sh"
start_daemon one || finish

for transport in shm tcp; do
    TRIB_TRANSPORT=$transport service one timeout $((60 * slow)) "$build/tools/trib-run" -n 3 -- \
        "$build/examples/parameters" >"$said" 2>&1
    result $? "$transport: runs"
    [ "$(grep -c 'version 600, x\[999\] = 999.0: success' "$said")" = 3 ]
    result $? "$transport: each rank has the fitted vector"
done
within 10 is_empty one
result $? "the store is gone with its ranks"
finish
