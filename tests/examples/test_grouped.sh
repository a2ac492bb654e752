#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# examples/grouped, examples/grouped_loop: the gradients of a model as one group of tensors.
# shellcheck source=tests/harness/tap.sh
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"

for transport in shm tcp; do
    TRIB_TRANSPORT=$transport timeout $((60 * slow)) "$build/tools/trib-run" -n 3 -- \
        "$build/examples/grouped" >"$said" 2>&1
    result $? "$transport: runs"
    # step 3, ranks 0, 1 and 2, plus the number of the tensor
    grep -q "means: 3 to 6" "$said"
    result $? "$transport: means"
    TRIB_TRANSPORT=$transport timeout $((60 * slow)) "$build/tools/trib-run" -n 3 -- \
        "$build/examples/grouped_loop" >"$said" 2>&1 && grep -q "sums: 18 and 18" "$said"
    result $? "$transport: in an event loop"
done
finish
