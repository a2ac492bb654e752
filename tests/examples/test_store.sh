#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# examples/store: three ranks meet over files, without a launcher or a port of the meeting.
# shellcheck source=tests/harness/tap.sh
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"

store() { # TRANSPORT
    local rank jobs=() code=0
    rm -rf "$dir/store" && mkdir "$dir/store"
    for rank in 0 1 2; do
        TRIB_TRANSPORT=$1 timeout $((60 * slow)) "$build/examples/store" "$dir/store" $rank 3 &
        jobs+=($!)
    done
    for rank in 0 1 2; do wait "${jobs[rank]}" || code=1; done
    return $code
}

for transport in shm tcp; do
    store $transport >"$said" 2>&1
    result $? "$transport: all ranks do well"
    [ "$(grep -c "of 3: sum 3$" "$said")" = 3 ]
    result $? "$transport: the sum is right"
done
finish
