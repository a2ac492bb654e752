#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# examples/gossip_late: four ranks of unlike speed find the mean by giving halves to neighbours, which may come late.
# shellcheck source=tests/harness/tap.sh
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"

for transport in shm tcp; do
    TRIB_TRANSPORT=$transport timeout $((60 * slow)) "$build/tools/trib-run" -n 4 -- \
        "$build/examples/gossip_late" >"$said" 2>&1
    [ "$(grep -c 'mean 1.500000$' "$said")" = 4 ]
    result $? "the mean of four ranks over $transport, with late parts"
done
finish
