#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# examples/pass_on: what each rank has comes to all others, by messages.
# shellcheck source=tests/harness/tap.sh
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"

for transport in shm tcp; do
    for ranks in 1 4; do
        TRIB_TRANSPORT=$transport timeout $((60 * slow)) "$build/tools/trib-run" -n $ranks -- \
            "$build/examples/pass_on" >"$said" 2>&1
        [ "$(grep -c "round, sum $((ranks * (ranks - 1) / 2))\$" "$said")" = $ranks ]
        result $? "$ranks ranks over $transport"
    done
done
finish
