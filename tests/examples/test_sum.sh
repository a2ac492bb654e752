#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The first program that people see stands in three places: examples/sum.c, the comment
# of tributary.h, README.md. They must be the same program.

cd "${abs_top_srcdir:-$(dirname "$0")/../..}" || exit 1
failed=0

compare() { # NUMBER NAME TEXT
    if difference=$(diff <(sed 1d examples/sum.c) <(echo "$3")); then
        echo "ok $1 - $2 has the program of examples/sum.c"
    else
        echo "$difference"
        echo "not ok $1 - $2 has the program of examples/sum.c"
        failed=1
    fi
}

echo "1..2"
compare 1 include/tributary.h \
    "$(sed -n '/^ [*]     #include <stdio.h>/,/^ [*]     }/{s/^ [*]     //; s/^ [*]$//; p}' \
        include/tributary.h)"
compare 2 README.md "$(sed -n '/^#include <stdio.h>/,/^}/p' README.md)"
exit $failed
