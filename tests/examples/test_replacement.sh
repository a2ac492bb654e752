#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# examples/replacement: rank 0 dies by SIGKILL, the others shrink, and a newcomer takes its place.
# shellcheck source=tests/harness/tap.sh
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"

for transport in shm tcp; do
    export TRIB_TRANSPORT=$transport
    rm -f "$dir/place"
    timeout $((60 * slow)) "$build/tools/trib-run" -n 3 --grace 50 -- \
        "$build/examples/replacement" "$dir/place" >"$said" 2>&1 &
    job=$!
    for ((i = 0; i < 500 * slow; i++)); do
        [ -s "$dir/place" ] && break
        sleep 0.02
    done
    timeout $((60 * slow)) "$build/examples/replacement" "$dir/place" join >"$dir/joined" 2>&1
    joined=$?
    wait $job
    ranks=$?
    cat "$dir/joined" >>"$said"
    [ $ranks = 137 ] && [ $joined = 0 ] && [ "$(grep -c 'rank [012] of 3' "$said")" = 3 ] &&
        grep -q 'rank 2 of 3' "$dir/joined"
    result $? "$transport: a newcomer takes the place of the lost rank"
done
finish
