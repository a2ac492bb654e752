#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# examples/embedding: ranks fit some elements each of a vector that lives in tribd.
# shellcheck source-path=SCRIPTDIR/../..
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"
. "${abs_top_srcdir:-.}/tests/agg/daemon/daemons.sh"
start_daemon one || finish

for transport in shm tcp; do
    TRIB_TRANSPORT=$transport service one timeout $((60 * slow)) "$build/tools/trib-run" -n 3 -- \
        "$build/examples/embedding" >"$said" 2>&1
    result $? "$transport: runs"
    [ "$(grep -cE 'x = 198[456].0: success' "$said")" = 3 ]
    result $? "$transport: each rank has its rows fitted"
done
finish
