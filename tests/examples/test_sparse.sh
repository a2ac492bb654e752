#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# examples/sparse: the union of what the ranks have, and its sums.
# shellcheck source=tests/harness/tap.sh
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"

for transport in shm tcp; do
    got=$(TRIB_TRANSPORT=$transport "$build/tools/trib-run" -n 3 -- "$build/examples/sparse" 2>&1 | tee -a "$said")
    [ "$got" = "[0] 7: 12
[0] 500000: 2
[0] 500001: 2
[0] 500002: 2" ]
    result $? "the union of three ranks over $transport"
done
finish
