#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# examples/parameters: ranks fit a vector that lives in tribd; examples/shards: one that lives in two.
# shellcheck source-path=SCRIPTDIR/../..
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"
. "${abs_top_srcdir:-.}/tests/agg/daemon/daemons.sh"
start_daemon one || finish

for transport in shm tcp; do
    TRIB_TRANSPORT=$transport service one timeout $((60 * slow)) "$build/tools/trib-run" -n 3 -- \
        "$build/examples/parameters" >"$said" 2>&1
    result $? "$transport: runs"
    [ "$(grep -c 'version 600, x\[999\] = 999.0: success' "$said")" = 3 ]
    result $? "$transport: each rank has the fitted vector"
done
start_daemon two || finish
TRIB_TRANSPORT=shm service "one two" timeout $((60 * slow)) "$build/tools/trib-run" -n 2 -- \
    "$build/examples/shards" >"$said" 2>&1
[ "$(grep -c 'version 10, x\[0\] = 4.50, x\[4194303\] = 4.50: success' "$said")" = 2 ]
result $? "each rank has the vector of both"
within 10 is_empty one && within 10 is_empty two
result $? "the store is gone with its ranks"
finish
