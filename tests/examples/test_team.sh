#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# examples/team: four threads of each rank use one communicator.
# shellcheck source=tests/harness/tap.sh
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"

for transport in shm tcp; do
    TRIB_TRANSPORT=$transport timeout $((60 * slow)) "$build/tools/trib-run" -n 3 -- \
        "$build/examples/team" >"$said" 2>&1
    result $? "$transport: all ranks do well"
    [ "$(grep -c "thread 3: sum 9$" "$said") $(grep -c "thread 1: sum 3$" "$said")" = "3 3" ]
    result $? "$transport: the sums are right"
done
finish
