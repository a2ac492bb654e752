#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# examples/elements: bool, bits, integers without sign and 8-bit floats on three ranks.
# shellcheck source=tests/harness/tap.sh
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"

for transport in shm tcp; do
    # 3 * 2^62, which has no sign; (1 + 2 + 4) / 3 = 2.33, nearest 2.25
    TRIB_TRANSPORT=$transport timeout $((60 * slow)) "$build/tools/trib-run" -n 3 -- \
        "$build/examples/elements" >"$said" 2>&1
    grep -q "overflow 1, layers 0x7, samples 13835058055282163712, gradient 0x41" "$said"
    result $? "$transport: each kind of element is right"
done
finish
