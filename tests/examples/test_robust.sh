#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# examples/robust: one of five ranks sends poison. The median and its like learn, the mean does not.
# shellcheck source=tests/harness/tap.sh
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"

off_by() { # OP: how far off the weights are
    "$build/tools/trib-run" -n 5 -- "$build/examples/robust" "$1" 2>&1 | tee "$said" |
        sed -n 's/.* are off by \([^;]*\);.*/\1/p'
}

for op in median trimmed-mean clipped-mean; do
    off=$(off_by $op)
    awk -v off="${off:-1}" 'BEGIN { exit !(off < 0.35) }'
    result $? "$op: off by $off"
done
off=$(off_by mean)
awk -v off="${off:-0}" 'BEGIN { exit off >= 0 && off < 1 }'
result $? "mean: off by $off"
finish
