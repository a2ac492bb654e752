#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Three copies of the first program must be identical: examples/sum.c, the comment of tributary.h
# and README.md.

cd "${abs_top_srcdir:-$(dirname "$0")/../..}" || exit 1
# shellcheck source=tests/harness/tap.sh
. tests/harness/tap.sh

compare() { # NAME TEXT
    diff <(sed 1d examples/sum.c) <(echo "$2") >"$said"
    result $? "$1 has the program of examples/sum.c"
}

compare include/tributary.h \
    "$(sed -n '/^ [*]     #include <stdio.h>/,/^ [*]     }/{s/^ [*]     //; s/^ [*]$//; p}' \
        include/tributary.h)"
compare README.md "$(sed -n '/^#include <stdio.h>/,/^}/p' README.md)"
finish
