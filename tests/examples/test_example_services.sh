#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Examples that run with and without a tribd, and examples with vectors in a tribd.
# shellcheck source-path=SCRIPTDIR/../..
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"
. "${abs_top_srcdir:-.}/tests/agg/daemon/daemons.sh"

run() { # RANKS, EXAMPLE
    timeout $((60 * slow)) "$build/tools/trib-run" -n "$1" -- "$build/examples/$2" >"$said" 2>&1
}

says() { # EXAMPLE, property, expected output of rank 0
    run 3 "$1"
    [ "$(sed 's/^\[0\] *//' "$said" | tr '\n' ' ')" = "$3 " ]
    result $? "$1: $2"
}

all_say() { # WHERE
    says notified "each sum is notified, $1" "step 1: 6 step 2: 12 step 3: 18"
    says uneven "each sample counts once, $1" "step 0: 1 4 step 1: 1.66667 4.66667"
    says slowest "the slowest ranks, $1" "load: 0.2 s on rank 2 forward: 0.2 s on rank 1 backward: 0.2 s on rank 0"
}

TRIB_TRANSPORT=shm all_say "over shared memory"
TRIB_TRANSPORT=tcp all_say "over sockets"
start_daemon one || finish
TRIB_ALGORITHM=service service "one" all_say "through a tribd"

fitted() { # EXAMPLE, expected result of each rank, PATTERN of it
    TRIB_TRANSPORT=$transport service one run 3 "$1"
    result $? "$1: $transport: runs"
    [ "$(grep -c "$3" "$said")" = 3 ]
    result $? "$1: $transport: each rank has $2"
}
for transport in shm tcp; do
    fitted parameters "the fitted vector" 'version 600, x\[999\] = 999.0: success'
    fitted embedding "its rows fitted" 'x = 198[456].0: success'
done
start_daemon two || finish
TRIB_TRANSPORT=shm service "one two" run 2 shards
[ "$(grep -c 'version 10, x\[0\] = 4.50, x\[4194303\] = 4.50: success' "$said")" = 2 ]
result $? "shards: each rank has the vector of both"
within 10 is_empty one && within 10 is_empty two
result $? "the store is gone with its ranks"
finish
