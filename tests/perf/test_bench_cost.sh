#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# What perf/bench/cost.sh makes of launches, whose tables are reckoned here by hand, and perf/cost.
# shellcheck source=tests/harness/tap.sh
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"
perf=${abs_top_srcdir:-.}/perf
cost=${abs_top_builddir:-build}/perf/cost

table() { # row that the table has; launches "codec,link,ranks,ns" come in
    {
        echo header
        awk -F, '{ print NR ",near,near," $1 "," $2 "," $3 ",25000000," $4 }'
    } >"$dir/runs.csv"
    awk -f "$perf/bench/tables.awk" -f "$perf/bench/cost.awk" "$dir/runs.csv" >"$said" 2>&1
    grep -qF -- "$1" "$said"
    result $? "$1"
}

some='dgc,alone,1,1.2
dgc,alone,1,0.8
dgc,alone,1,1
dgc,shm,2,1.5
dgc,tcp,4,1.6
other,alone,1,2
other,shm,2,5'
table '| codec | alone | shm, 2 ranks | tcp, 4 ranks |' <<<"$some"
table '| dgc | 1.00 [0.80-1.20] | 1.50 [1.50-1.50], 1.50 ✓ | 1.60 [1.60-1.60], 1.60 ✗ |' <<<"$some"
table '| other | 2.00 [2.00-2.00] | 5.00 [5.00-5.00], 2.50 | - |' <<<"$some"
expect "help" 0 "bench.md (tables)" "$perf/bench/cost.sh" --help
expect "no folders" 2 "BUILD_DIR and OUT_DIR are needed" "$perf/bench/cost.sh" --quick

"$cost" topk 100000 3 >"$said" 2>&1 && awk '{ exit !($1 > 0 && NF == 1) }' "$said"
result $? "cost of a selection with feedback"
expect "no such codec" 1 "cost: topq: " "$cost" topq 100000 3
expect "no passes" 2 "usage: cost CODEC" "$cost" topk 100000 0
finish
